"""The version, in the one place that the build reads, and the form of the package."""

__version__ = "0.1.0"

# Whether the modules that take most of the time are compiled (docs/how-to/compile.md); this one is compiled with them.
__compiled__: bool = not __file__.endswith((".py", ".pyc"))
