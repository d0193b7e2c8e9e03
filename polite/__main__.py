"""`python -m polite` is the `polite` command."""

from polite.cli.main import program

if __name__ == "__main__":
    program()
