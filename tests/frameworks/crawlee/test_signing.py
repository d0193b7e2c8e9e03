"""A gate with a signer: each page is signed for the server that it goes to."""

from collections.abc import Mapping

import polite
from tests.frameworks.crawlee.crawls import crawling, judge
from tests.integrations.site import Site


class Signer:
    """Says what it signed; it does not sign `/plain`."""

    def sign(self, method: str, target: polite.Target, now: float) -> Mapping[str, str]:
        return {} if target.path == "/plain" else {"Signature": f"{method} {target.url}"}


async def test_pages_and_redirects_are_signed(site: Site) -> None:
    urls = [f"{site.url('/hop')}?to={site.urls[1]}/end", f"{site.url('/hop/2')}?to=/plain"]

    async with crawling(signer=Signer()) as crawl:
        await crawl.run(urls)

    judge(site)
    signed = {f"{hit.url}{hit.raw}": hit.headers.get("Signature") for hit in site.hits}
    plain = signed.pop(site.url("/plain"))
    assert plain is None
    assert len(signed) == 5
    assert all(signature == f"GET {url}" for url, signature in signed.items())
