"""A signer in the setting POLITE: each page is signed for the server that it goes to."""

from collections.abc import Mapping

import polite
from polite.gate.fetcher import SignerFailed
from tests.frameworks.scrapy.crawls import Noting, Reactor, crawl, judge
from tests.integrations.site import LOOPBACK, Site


class Signer:
    """Says what it signed; it does not sign `/plain`."""

    def sign(self, method: str, target: polite.Target, now: float) -> Mapping[str, str]:
        return {} if target.path == "/plain" else {"Signature": f"{method} {target.url}"}


class Failing(Signer):
    """Has no key for `/broken`."""

    def sign(self, method: str, target: polite.Target, now: float) -> Mapping[str, str]:
        if target.path == "/broken":
            raise OSError("no key")
        return super().sign(method, target, now)


SIGNER, FAILING = Signer(), Failing()


def test_pages_and_redirects_are_signed(reactor: Reactor, site: Site) -> None:
    urls = [f"{site.url('/hop')}?to={site.urls[1]}/end", f"{site.url('/hop/2')}?to=/plain"]
    options = {"fetching": LOOPBACK, "signer": f"{__name__}.SIGNER"}

    crawl(reactor, Noting, urls, settings={"POLITE": options})

    judge(site)
    signed = {f"{hit.url}{hit.raw}": hit.headers.get("Signature") for hit in site.hits}
    plain = signed.pop(site.url("/plain"))
    assert plain is None
    assert len(signed) == 5
    assert all(signature == f"GET {url}" for url, signature in signed.items())


def test_a_signer_that_fails_says_nothing_of_the_server(reactor: Reactor, site: Site) -> None:
    pacing = polite.PacingPolicy(min_delay=0.1, circuit_failures=1, circuit_rest=0.2)
    options = {"fetching": LOOPBACK, "signer": f"{__name__}.FAILING", "pacing": pacing}

    done = crawl(reactor, Noting, [site.url("/broken"), site.url("/a")], settings={"POLITE": options})

    judge(site)
    assert done.spider.pages == [site.url("/a")]
    assert [type(error) for _, error in done.spider.errors] == [SignerFailed]
    assert "circuits_opened" not in done.counted
