"""The demo's servers, as a client sees them, and that the hand-written lists of its hosts agree with their robots.txt."""

import asyncio

import pytest

import polite
from docs.examples.demo import server
from docs.examples.demo.server import serving
from docs.examples.demo.sites import AGENT, HOSTS, Quirk

BY_NAME = {host.name: host for host in HOSTS}


async def _get(web, name, path):
    """Return the status line and body from a host's address."""
    reader, writer = await asyncio.open_connection(web.addresses[name], web.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    head, _, body = answer.decode().partition("\r\n\r\n")
    return int(head.split()[1]), head, body


@pytest.mark.parametrize(
    ("name", "path", "status"),
    [
        ("groups.test", "/robots.txt", 200),
        ("missing.test", "/robots.txt", 404),
        ("five.test", "/robots.txt", 302),
        ("five.test", "/hop/five.test/5", 200),
        ("six.test", "/hop/six.test/5", 302),
        ("six.test", "/hop/six.test/6", 200),
        ("six.test", "/hop/six.test/7", 404),
        ("six.test", "/hop/six.test/x", 404),
        ("six.test", "/hop/nobody.test/1", 404),
        ("groups.test", "/", 200),
        ("groups.test", "/unheard-of", 404),
    ],
)
async def test_each_host_answers_as_it_is_meant_to(name, path, status):
    async with serving() as web:
        answered, _, _ = await _get(web, name, path)

    assert answered == status
    assert [(request.host, request.path, request.status) for request in web.requests] == [
        (name, path, status)
    ]


@pytest.mark.parametrize(
    ("name", "path", "statuses"),
    [("busy.test", "/robots.txt", [503, 503, 200]), ("limited.test", "/page/2", [429, 200])],
)
async def test_a_host_in_trouble_recovers(name, path, statuses):
    async with serving() as web:
        answers = [await _get(web, name, path) for _ in statuses]

    assert [status for status, _, _ in answers] == statuses
    assert ("Retry-After: 2" in answers[0][1]) is (name == "limited.test")


async def test_links_and_redirects_lead_to_other_hosts():
    async with serving() as web:
        _, head, _ = await _get(web, "five.test", "/hop/five.test/2")
        _, _, body = await _get(web, "html.test", "/")

    assert f"Location: http://groups.test:{web.port}/hop/five.test/3" in head
    assert 'href="/page/5"' in body
    assert f'href="http://müller.test:{web.port}/"' in body
    assert 0 < web.requests[0].at < web.requests[1].at


async def test_without_the_addresses_the_error_says_what_is_missing(monkeypatch):
    def refuse(_):
        raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(server.socket, "create_server", refuse)

    with pytest.raises(OSError, match=r"127\.31\.0\.1 to 127\.31\.0\.16.*Cannot assign"):
        async with serving():
            pass


async def test_a_port_taken_on_one_address_leads_to_another(monkeypatch):
    real, refused = server.socket.create_server, []

    def once(address):
        if address[0] == "127.31.0.4" and not refused:
            refused.append(address)
            raise OSError(98, "Address already in use")
        return real(address)

    monkeypatch.setattr(server.socket, "create_server", once)

    async with serving() as web:
        assert len(web.addresses) == 16
    assert refused


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_the_lists_by_hand_agree_with_the_rules(host):
    rules = polite.parse(host.robots).rules_for(AGENT)
    disallowed = tuple(path for path in host.pages if not rules.allows(path))

    assert set(host.forbidden) < set(host.pages)
    # The sixth redirect hides rules that disallow all.
    assert disallowed == (host.pages if host.hops > 5 else host.forbidden)
    assert host.delay_s == (0.3 if rules.crawl_delay is None else rules.crawl_delay)


def test_hosts_cover_what_the_demo_promises():
    huge = BY_NAME["huge.test"].robots

    assert len(BY_NAME) == 16
    assert {host.quirk for host in HOSTS} == set(Quirk)
    assert {host.hops for host in HOSTS} == {0, 5, 6}
    assert 512_000 < huge.index(b"Disallow: /page\n") < len(huge)
    assert polite.Origin.of("http://müller.test").host in BY_NAME
