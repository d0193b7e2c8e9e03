"""`polite store` with the URL of a shared store."""

import asyncio
import json
import re
import time

import pytest

from polite.cli.main import main
from polite.clock import SystemClock
from polite.origin import Origin
from polite.ports import SavedBackOff
from polite.robots.policy import RobotsPolicy
from polite.robots.result import Found
from polite.robots.snapshot import renewed
from polite.stores.redis.changes import Hold, Out, Postpone
from polite.stores.redis.opening import open_shared
from tests.many.stepping import SECOND, Crawl, digest, put
from tests.many.test_link import acl_rules

SITE = Origin.of("https://site.example/")


@pytest.fixture
def polite(capsys):
    """Run the command; return what it prints. A failure prints its status and its message."""

    def run(*arguments: str) -> str:
        capsys.readouterr()
        status, printed = main(["store", *arguments]), capsys.readouterr()
        errors = [line for line in printed.err.splitlines() if "appendonly" not in line]
        return printed.out if not status else f"{status} " + "\n".join(errors)

    return run


def join(url: str, name: str = "news", **terms: str) -> None:
    async def join() -> None:
        shared = await open_shared(url, SystemClock())
        await shared.join(name, **terms)
        await shared.close()

    asyncio.run(join())


def begun(valkey, name="news"):
    join(valkey.url, name, order="fifo")
    return Crawl(valkey, f"polite:{{{name}:0}}:")


@pytest.fixture
def crawl(valkey):
    process = begun(valkey).process("one")
    process.put("https://held.example/1", "https://held.example/2")
    process.take("held.example")
    process.step(holds=[Hold("held.example", process.fences["held.example"], 90 * SECOND, None)])
    process.put("https://ready.example/")
    process.step(puts=[put("https://later.example/", ready_in=500 * SECOND)])
    return process


def test_ls_has_a_line_a_crawl(valkey, crawl, polite):
    begun(valkey, "other")
    assert polite("ls", valkey.url).splitlines() == [
        "news  4 waiting, 0 done, 0 refused, 0 dropped; 1 session, 1 home held, 1 in line, 1 later",
        "other  0 waiting, 0 done, 0 refused, 0 dropped; 0 sessions, 0 homes held, 0 in line, 0 later",
    ]
    assert polite("ls", valkey.url, "--crawl", "other").startswith("other  0 waiting")
    assert len(polite("ls", valkey.url, "--limit", "1").splitlines()) == 1


def test_show_says_who_has_what_and_what_waits_for_what(valkey, crawl, polite):
    out = polite("show", valkey.url, "--crawl", "news")

    assert [re.sub(r"\d+\.\d", "T", line) for line in out.splitlines()] == [
        "news  4 waiting, 0 done, 0 refused, 0 dropped; 1 session, 1 home held, 1 in line, 1 later",
        "  home host, lease 15, order fifo, partitions 1, schema 1",
        "  session one  ends in T s unless renewed  1 home",
        "  held    held.example  by one  delayed for T s",
        "  line    ready.example  ready for T s, waits for a session with room",
        "  later   a task of https://later.example  for T s",
    ]
    assert 80 < float(re.findall(r"delayed for (\S+) s", out)[0]) <= 90


def test_programs_get_an_object_for_each_crawl_and_each_partition(valkey, crawl, polite):
    (news,) = map(json.loads, polite("ls", valkey.url, "--json").splitlines())
    partition = json.loads(polite("show", valkey.url, "--crawl", "news", "--json"))

    assert (news["crawl"], news["order"], news["waiting"], news["held"]) == ("news", "fifo", 4, 1)
    assert (partition["crawl"], partition["partition"], partition["waiting"]) == ("news", 0, 4)
    assert partition["counts"] == {"sessions": 1, "held": 1, "line": 1, "later": 1}
    (session,), (held,), (later,) = partition["sessions"], partition["held"], partition["later"]
    assert session == session | {"session": "one", "homes": 1, "puts_no_more": False}
    assert held == held | {"home": "held.example", "session": "one"}
    assert [each["home"] for each in partition["line"]] == ["ready.example"]
    assert later == later | {"home": "later.example", "origin": "https://later.example", "is_task": True}
    assert 0 < session["ends_in_s"] <= 60
    assert 80 < held["delayed_s"] <= 90
    assert 490 < later["ready_in_s"] <= 500


def test_show_of_an_origin_has_its_robots_txt_and_its_back_off(valkey, polite):
    async def fill() -> None:
        shared = await open_shared(valkey.url, SystemClock())
        now = time.time()
        rules = Found(b"User-agent: *\nDisallow: /\x1b[31m", 200, SITE.robots_url)
        await shared.robots.save(SITE, renewed(None, rules, RobotsPolicy(), now))
        shared.robots.hold(SITE, SavedBackOff(now, now + 900.0, "status 503"))
        await shared.close()

    nothing = polite("show", "https://site.example", valkey.url)
    asyncio.run(fill())
    out = polite("show", "https://site.example/page", valkey.url)

    assert nothing == "1 polite: the store has nothing about https://site.example"
    assert out.startswith("https://site.example\n")
    assert "  outcome: found\n" in out
    assert "  back_off_because: status 503\n" in out
    assert out.endswith("\n\nUser-agent: *\nDisallow: /\\x1b[31m\n")
    known = json.loads(polite("show", "https://site.example/page", valkey.url, "--json"))
    assert known["body"].startswith("User-agent")
    assert "deleted: robots.txt of https://site.example (2 keys)" in polite(
        "purge", "https://site.example/", valkey.url, "--yes"
    )
    assert polite("show", "https://site.example", valkey.url) == nothing


def test_show_of_an_origin_of_a_crawl_says_who_has_it_and_what_it_waits_for(valkey, crawl, polite):
    home, origin = "held.example", "https://held.example"
    crawl.step(outs=[Out(home, crawl.fences[home], origin, digest(f"{origin}/1"))])
    crawl.put("http://www.other.example/", "http://other.example/", home="other.example")
    crawl.step(postpones=[Postpone(home, crawl.fences[home], origin, 40 * SECOND)])

    def shown(site: str) -> list[str]:
        out = polite("show", site, valkey.url, "--crawl", "news")
        return [re.sub(r"\d+\.\d", "T", line) for line in out.splitlines()]

    assert shown("https://held.example/page") == [
        "https://held.example in crawl news",
        "  tasks: 2 left, 1 of them with a worker; 0 ended",
        "  home held.example: held by session one, which ends in T s unless renewed",
        "  delayed for T s by a response, its robots.txt, or a circuit",
        "  robots.txt was unreachable: asked for again in T s",
    ]
    assert shown("https://ready.example")[2:] == [
        "  home ready.example: in line, ready for T s, waits for a session with room"
    ]
    assert shown("http://www.other.example")[2].startswith("  home other.example: in line, ready")
    assert shown("https://later.example")[1:] == [
        "  tasks: 1 left, 0 of them with a worker; 0 ended",
        "  home later.example: no session holds it, and it has no task that is ready",
    ]
    assert shown("https://none.example") == ["1 polite: crawl news has nothing about https://none.example"]
    told = json.loads(polite("show", origin, valkey.url, "--crawl", "news", "--json"))
    assert (told["left"], told["out"], told["session"]) == (2, 1, "one")


def test_purge_asks_refuses_a_crawl_in_use_and_deletes_that_crawl_alone(valkey, polite):
    # A crawl whose name begins the keys of all robots.txt.
    crawl = begun(valkey, "r")
    crawl.process("one").put("https://a.example/")
    valkey.client.set("polite:{r:https://a.example}", "1")
    begun(valkey, "r2").process("two").put("https://site.example/")
    others = {"polite:{r:https://a.example}", *valkey.client.keys("polite:{r2*")}

    asks = polite("purge", valkey.url, "--crawl", "r")
    used = polite("purge", valkey.url, "--crawl", "r", "--yes")
    crawl.expire(crawl.process("one"))
    done = polite("purge", valkey.url, "--crawl", "r", "--yes")

    assert asks == "2 polite: store purge: this deletes crawl r for all machines; add --yes to do it"
    assert used.startswith("2 polite: crawl 'r' is used: a session ends in ")
    assert re.fullmatch(r"deleted: crawl r \(\d+ keys\)\n", done)
    assert set(valkey.client.keys()) == others
    assert polite("show", valkey.url, "--crawl", "r").endswith("there is no crawl 'r'")


def test_a_cluster_is_listed_and_purged(valkey_cluster, polite):
    join(valkey_cluster.url)
    for number in range(8):
        prefix = f"polite:{{news:{number}}}:"
        process = Crawl(valkey_cluster.of(prefix), prefix).process("one")
        process.step(puts=[put(f"https://h{number}.example/")], bye=True, check=False)

    listed = polite("ls", valkey_cluster.url)
    shown = polite("show", valkey_cluster.url, "--crawl", "news")
    polite("purge", valkey_cluster.url, "--crawl", "news", "--yes")

    assert listed.startswith("news  8 waiting")
    assert [f"  {number}  line    h{number}.example" in shown for number in range(8)] == [True] * 8
    assert [node.client.keys() for node in valkey_cluster.nodes] == [[], []]


@pytest.mark.parametrize(
    ("arguments", "wrong"),
    [
        (["show", "URL"], "use polite store show ORIGIN URL, polite store show URL --crawl NAME"),
        (["ls", "https://a.example", "URL"], "takes no ORIGIN"),
        (["purge", "URL", "--expired"], "takes no --expired"),
        (["ls", "URL", "--crawl", "a b"], "crawl must be a name"),
        (["ls", "crawl.sqlite", "--crawl", "news"], "takes no --crawl: FILE is a file"),
        (["ls", "redis://u:hunter2@a:x"], "must have a port"),
    ],
)
def test_wrong_usage_is_named(valkey, polite, arguments: list[str], wrong: str):
    message = polite(*(valkey.url if each == "URL" else each for each in arguments))
    assert message.startswith("2 polite: ")
    assert wrong in message
    assert "hunter2" not in message


def test_credentials_come_from_variables_and_the_documented_acl_is_enough(valkey, crawl, polite, monkeypatch):
    valkey.client.execute_command("ACL", "SETUSER", "polite-operator", "reset", *acl_rules("polite-operator"))
    monkeypatch.setenv("POLITE_STORE_USER", "polite-operator")
    monkeypatch.setenv("POLITE_STORE_PASSWORD", "hunter2")
    try:
        outputs = [
            polite("ls", valkey.url),
            polite("show", "https://held.example", valkey.url, "--crawl", "news"),
        ]
        crawl.crawl.expire(crawl)
        outputs.append(polite("purge", valkey.url, "--crawl", "news", "--yes"))
        monkeypatch.setenv("POLITE_STORE_PASSWORD", "hunter3")
        refused = polite("ls", valkey.url)
    finally:
        valkey.client.acl_deluser("polite-operator")

    assert [output[:9] for output in outputs] == ["news  4 w", "https://h", "deleted: "]
    assert "refuses the user or the password" in refused
    assert "hunter" not in refused + "".join(outputs)
