"""The demo's servers, as a client sees them."""

import asyncio

import pytest

from docs.examples.demo import server
from docs.examples.demo.server import serving


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
        ("locked.test", "/robots.txt", 403),
        ("five.test", "/robots.txt", 302),
        ("five.test", "/hop/five.test/5", 200),
        ("six.test", "/hop/six.test/5", 302),
        ("six.test", "/hop/six.test/6", 200),
        ("six.test", "/hop/six.test/7", 404),
        ("six.test", "/hop/six.test/0", 404),
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


async def test_a_busy_host_has_its_rules_at_the_third_time():
    async with serving() as web:
        statuses = [(await _get(web, "busy.test", "/robots.txt"))[0] for _ in range(3)]

    assert statuses == [503, 503, 200]


async def test_a_limited_host_asks_for_patience_once():
    async with serving() as web:
        status, head, _ = await _get(web, "limited.test", "/page/2")
        again, _, _ = await _get(web, "limited.test", "/page/2")

    assert (status, again) == (429, 200)
    assert "Retry-After: 2" in head


async def test_one_stop_of_the_way_lies_on_another_host():
    async with serving() as web:
        _, head, _ = await _get(web, "five.test", "/hop/five.test/2")

    assert f"Location: http://groups.test:{web.port}/hop/five.test/3" in head


async def test_a_front_page_links_to_its_pages_and_to_the_next_host():
    async with serving() as web:
        _, _, body = await _get(web, "html.test", "/")

    assert 'href="/page/5"' in body
    assert f'href="http://müller.test:{web.port}/"' in body


async def test_hits_are_stamped_in_the_order_of_arrival():
    async with serving() as web:
        for path in ("/robots.txt", "/"):
            await _get(web, "mac.test", path)

    first, second = web.requests
    assert 0 < first.at < second.at


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
