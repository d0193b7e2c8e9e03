"""The page on crawlee, and the five lines, run as they are, on a site on loopback."""

from aiohttp import web

from tests.frameworks.examples import PAGES, require_what_the_page_says
from tests.integrations.site import Answer

SITE = {"/robots.txt": "User-agent: *\nDisallow: /private/\n", "/about": "About this site"}


def says(path: str) -> Answer:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response(status=200 if path in SITE else 404, text=SITE.get(path, ""))

    return answer


@PAGES
async def test_examples_print_what_the_page_says(page: str, site, monkeypatch, capsys):
    site.answers = {path: says(path) for path in (*SITE, "/")}

    await require_what_the_page_says(
        page, "crawlee", site.url("/"), monkeypatch, lambda: capsys.readouterr().out
    )
