"""The hand-written lists of the demo's hosts agree with their robots.txt."""

import pytest

import polite
from docs.examples.demo.sites import AGENT, HOSTS, Quirk

BY_NAME = {host.name: host for host in HOSTS}
RULED = [host for host in HOSTS if host.quirk not in {Quirk.MISSING, Quirk.FORBIDDEN} and host.hops <= 5]


def test_there_are_sixteen_hosts_of_different_names():
    assert len(HOSTS) == len(BY_NAME) == 16


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_what_is_forbidden_is_linked_to_and_leaves_pages_to_fetch(host):
    assert set(host.forbidden) < set(host.pages)
    assert len(set(host.pages)) == len(host.pages)
    assert "/" in host.pages


@pytest.mark.parametrize("host", RULED, ids=lambda host: host.name)
def test_the_list_by_hand_agrees_with_the_rules(host):
    rules = polite.parse(host.robots).rules_for(AGENT)

    assert tuple(path for path in host.pages if not rules.allows(path)) == host.forbidden


@pytest.mark.parametrize("host", RULED, ids=lambda host: host.name)
def test_a_delay_is_the_one_that_the_file_asks_for(host):
    delay = polite.parse(host.robots).rules_for(AGENT).crawl_delay

    assert host.delay_s == (0.3 if delay is None else delay)


def test_the_sixth_redirect_hides_rules_that_would_forbid_all():
    rules = polite.parse(BY_NAME["six.test"].robots).rules_for(AGENT)

    assert not any(rules.allows(path) for path in BY_NAME["six.test"].pages)


def test_the_huge_file_forbids_more_beyond_its_cap():
    body = BY_NAME["huge.test"].robots
    beyond = body.index(b"Disallow: /page\n")

    assert 512_000 < beyond < len(body)


def test_one_host_is_international():
    assert polite.Origin.of("http://müller.test").host in BY_NAME


def test_every_quirk_is_played():
    assert {host.quirk for host in HOSTS} == set(Quirk)
    assert {host.hops for host in HOSTS} == {0, 5, 6}
