"""The version, in the one place that the build reads, and the form of the package."""

__version__ = "0.1.0"
"""The version of polite, such as "1.2.3" (PEP 440)."""

__compiled__: bool = not __file__.endswith((".py", ".pyc"))
"""Whether the modules that take most of the time are compiled (docs/how-to/install.md); this one is compiled with them."""
