"""`./dev man`: write the man pages of `polite` and its subcommands, docs/man/polite.1 and so on, from the parser.

They are tracked, so that a wheel has them without building anything; a test compares them with the parser. The text does not depend
on how a version of Python formats help.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from polite.cli.main import ENVIRONMENT
from polite.cli.parser import arguments, parser, subcommands
from polite.version import __version__

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "man"
_VARIABLES = {
    "POLITE_AGENT": "The User-Agent header, without --agent.",
    "POLITE_DELAY": "The least delay between two requests to one origin, without --delay.",
    "POLITE_CONFIG": "A TOML file with options, without --config.",
    "POLITE_STORE_USER": "The user of a shared store whose URL has no credentials.",
    "POLITE_STORE_PASSWORD": "The password for it.",
}
_WITH_STORE = frozenset({"fetch", "store"})
_CODE = re.compile(r"(?:^|[,;] )(\d+) ")


def pages() -> dict[str, str]:
    """Return the text of each page by its file name."""
    command = parser()
    found = {"polite.1": _page("polite", command, list(_commands(command)))}
    for name, subcommand in subcommands(command):
        found[f"polite-{name}.1"] = _page(f"polite-{name}", subcommand, [])
    return found


def _page(title: str, command: argparse.ArgumentParser, commands: list[str]) -> str:
    """Return a page in the man(7) macros."""
    name = title.partition("-")[2]
    lines = [
        f'.TH "{_text(title.upper())}" "1" "" "polite {__version__}" "User Commands"',
        *('.SH "NAME"', f"{_text(title)} \\- {_text(command.description or '')}"),
        *('.SH "SYNOPSIS"', *_synopsis(command, has_commands=bool(commands))),
        *commands,
        *_arguments(command),
        *_environment(name),
        *('.SH "EXIT STATUS"', *_exit_status(command.epilog or "")),
        *('.SH "SEE ALSO"', *_see_also(command, name)),
    ]
    return "\n".join(lines) + "\n"


def _synopsis(command: argparse.ArgumentParser, *, has_commands: bool) -> Iterator[str]:
    words = [_bold(command.prog), "[options]"]
    for action in arguments(command):
        if action.option_strings:
            if action.required:
                words.append(_option(action))
            continue
        word = _value(action)
        words.append(
            {"?": f"[{word}]", "*": f"[{word} ...]", "+": f"{word} ..."}.get(str(action.nargs), word)
        )
    if has_commands:
        words[1:] = [r"\fICOMMAND\fR", "[options]", "..."]
    yield " ".join(words)


def _commands(command: argparse.ArgumentParser) -> Iterator[str]:
    yield '.SH "COMMANDS"'
    for name, subcommand in subcommands(command):
        yield from (
            ".TP",
            f"\\fBpolite\\-{_text(name)}\\fR(1)",
            _text(_sentence(subcommand.description or "")),
        )


def _arguments(command: argparse.ArgumentParser) -> Iterator[str]:
    found = list(arguments(command))
    for heading, part in (
        ("ARGUMENTS", [each for each in found if not each.option_strings]),
        ("OPTIONS", [each for each in found if each.option_strings]),
    ):
        if part:
            yield f'.SH "{heading}"'
        for action in part:
            yield from (".TP", _option(action) if action.option_strings else _value(action))
            help_text = (action.help or "").replace("%(default)s", str(action.default))
            yield _text(_sentence(help_text))


def _environment(name: str) -> Iterator[str]:
    taken = [each for each, (_, commands) in ENVIRONMENT.items() if name in commands]
    if name in _WITH_STORE:
        taken += ["POLITE_STORE_USER", "POLITE_STORE_PASSWORD"]
    if taken:
        yield '.SH "ENVIRONMENT"'
    for variable in taken:
        yield from (".TP", _bold(variable), _text(_VARIABLES[variable]))


def _exit_status(epilog: str) -> Iterator[str]:
    """Return one entry per status of "exit status: 0 allowed, 1 disallowed; what else there is to say"."""
    _, *parts = _CODE.split(epilog.replace("exit status: ", "; ", 1))
    for code, meaning in zip(parts[::2], parts[1::2], strict=True):
        meant, _, rest = meaning.partition("; ")
        yield from (".TP", _bold(code), _text(_sentence(meant)))
        if rest:
            yield from (".PP", _text(_sentence(rest)))


def _see_also(command: argparse.ArgumentParser, name: str) -> Iterator[str]:
    others = ["polite"] if name else [f"polite-{each}" for each, _ in subcommands(command)]
    yield ",\n".join(f"\\fB{_text(each)}\\fR(1)" for each in others)


def _option(action: argparse.Action) -> str:
    names = ", ".join(map(_bold, action.option_strings))
    return names if action.nargs == 0 else f"{names} {_value(action)}"


def _value(action: argparse.Action) -> str:
    word = action.metavar
    if word is None:
        word = "|".join(map(str, action.choices)) if action.choices else action.dest.upper()
    return f"\\fI{_text(str(word))}\\fR"


def _bold(text: str) -> str:
    return f"\\fB{_text(text)}\\fR"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def _text(text: str) -> str:
    """Escape what roff would read: a backslash, a hyphen, which it would print as a dash, and a control line's first character."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


def main() -> int:
    """Write the pages, and delete those of commands that are gone."""
    FOLDER.mkdir(exist_ok=True)
    written = pages()
    for old in FOLDER.glob("*.1"):
        if old.name not in written:
            old.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    print(
        f"{len(written)} man pages in {FOLDER.relative_to(ROOT)}/: man -l {FOLDER.relative_to(ROOT)}/polite.1"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
