"""Which frameworks are installed: each integration is tested with the real package, in an environment of its own."""

from importlib.util import find_spec

FRAMEWORKS = ("scrapy", "crawlee", "crawl4ai", "playwright")
LEFT_OUT = tuple(name for name in FRAMEWORKS if find_spec(name) is None)
