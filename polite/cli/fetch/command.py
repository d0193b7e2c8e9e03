"""`polite fetch`: builds a run from the options."""

import argparse
import asyncio
import errno
import os
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack, closing, suppress
from itertools import combinations, islice, product
from pathlib import Path

from polite.cli.fetch.archive import BODIES, Archive, Folder, Warc
from polite.cli.fetch.page import Pages
from polite.cli.fetch.progress import MAX_ORIGINS, OriginStats
from polite.cli.fetch.queue_file import QueueNotes, as_text, kept_of, retried
from polite.cli.fetch.record import RepeatedLines, RunLog, is_begun, reopen, reopen_log, source_of
from polite.cli.fetch.run import Run
from polite.cli.interrupts import Interrupt, interrupts
from polite.cli.options import FEW, agent_needed, crawl_options, has_urls, is_unnamed, shared_store, signer_of
from polite.cli.stdin import are_few, more_than_few
from polite.cli.terminal import Exit, complain
from polite.clock import SystemClock
from polite.compose.frontier import open_frontier
from polite.compose.gate import open_gate
from polite.errors import InvalidOption, StoreFailed, redact_url
from polite.frontier.frontier import Frontier
from polite.frontier.sqlite.file_lock import FileLock
from polite.frontier.sqlite.inspector import QueueInspector, is_queue, waiting_by_origin, waiting_payloads
from polite.gate.gate import Gate
from polite.recrawl import RecrawlPolicy
from polite.robots.policy import RobotsPolicy
from polite.signing.web_bot_auth import WebBotAuth
from polite.status import serve
from polite.stores.redis.address import Address
from polite.stores.robots_database import StoreInspector
from polite.stores.sqlite import SqliteStore
from polite.transports.http import CapturedResponse, capture_responses


def lock(option: str, path: Path) -> FileLock:
    """Lock a file that the run appends to, before it is opened. Release the lock when the file is closed.

    A device, such as /dev/stderr, is not locked.

    Raises InvalidOption if another process has the lock, and OSError if there is no such folder.
    """
    held = FileLock(path)
    if path.exists() and not path.is_file():
        return held
    try:
        if held.acquire(0):
            return held
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    raise InvalidOption(
        f"{option}: another polite fetch is writing to {path}; wait until it ends, or choose another path"
    )


RECORDS = "records.jsonl"
# The suffix of the robots store beside the queue: the two cannot share a file.
_ROBOTS = ".robots"
# The suffix of the file that says what was recorded on standard output, which cannot be read again.
_JOURNAL = ".recorded"
# An interactive run does not wait as long as a crawler for a name that does not exist: that may be temporary.
_NXDOMAIN_RETRY_S = 10.0
# Limits on listed URLs in the frontier. The frontier holds twice as many, so that redirects find capacity.
_IN_MEMORY, _IN_FILE = 1_000_000, 1_000_000_000
# A killed run costs each page in flight one attempt. The frontier allows this many more than --tries.
_EXTRA_TRIES = 10
# Neither do attempts without a connection count as tries. They are rarer than this: a circuit opens after the first ten.
_OUTAGE_TRY_S = 30.0


def fetch(options: argparse.Namespace) -> Exit:
    """Fetch the list and return the highest exit status. Raises InvalidOption, OSError, StoreFailed."""
    _check_options(options)
    _check_files(options)
    return asyncio.run(_fetch(options, signer_of(options)))


def _check_options(options: argparse.Namespace) -> None:
    """Refuse options that do not go together. Raises InvalidOption."""
    for name in ("resume", "recrawl"):
        if (file := getattr(options, name)) is not None:
            # SQLite would keep some of these in memory.
            if not file or file == ":memory:" or "://" in file:
                raise InvalidOption(f"--{name} must be the name of a file, got {redact_url(file)!r}")
            if Path(file).is_dir():
                raise InvalidOption(f"--{name} {file} is a folder; name a file in it")
    resume, shared, given = options.resume, options.store, has_urls(options)
    nothing = not (given or resume or shared)
    typo = resume is not None and not given and not Path(resume).exists()
    wrong = {
        f"--resume {resume}: there is no such file to continue; check its name, or pass the URLs as well": typo,
        "no URLs given; name them, use --list FILE, or - to read standard input": nothing,
        "--retry needs --resume FILE, the queue of an earlier run": options.retry and not resume,
        "--change needs --resume FILE, the queue of an earlier run": options.change and not resume,
        "--store URL and --crawl NAME are needed together": (shared is None) != (options.crawl is None),
        "--store and --resume exclude each other: the shared store keeps the queue": resume and shared,
        "--limit is a limit on URLs of a list, and no URLs are given": options.limit and not given,
        "--list names a file; pass - as an argument to read standard input": "-" in (options.list or ()),
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise InvalidOption(message)
    _store(options)


def _check_files(options: argparse.Namespace) -> None:
    """Refuse lists that cannot be read, and two paths that are the same file, also through links, or one inside the other.

    Raises InvalidOption, OSError.
    """
    for name in options.list or ():
        path = Path(name)
        if path.is_dir():
            raise InvalidOption(f"--list {name} is a folder; name a file in it")
        if not os.access(path, os.R_OK):
            number = errno.EACCES if path.exists() else errno.ENOENT
            raise OSError(number, os.strerror(number), name)
    paths = [
        (f"--{name}", getattr(options, name)) for name in ("journal", "log", "warc", "recrawl", "resume")
    ]
    if options.resume is not None:
        paths.append((f"--resume (FILE{_ROBOTS})", options.resume + _ROBOTS))
        if options.output is None:
            paths.append((f"--resume (FILE{_JOURNAL})", options.resume + _JOURNAL))
    if options.output is not None:
        paths += [(f"--output (DIR/{name})", Path(options.output, name)) for name in (RECORDS, BODIES)]
    given = [(option, Path(path)) for option, path in paths if path is not None]
    inputs = [("--list", Path(each)) for each in options.list or ()]
    inputs += [(f"--{name}", Path(file)) for name in ("config", "sign") if (file := getattr(options, name))]
    for (option, path), (other, taken) in (*combinations(given, 2), *product(given, inputs)):
        # Resolving also covers links to files that do not exist yet.
        real, real_taken = Path(os.path.realpath(path)), Path(os.path.realpath(taken))
        same = real.is_relative_to(real_taken) or real_taken.is_relative_to(real)
        with suppress(OSError):
            same = same or path.samefile(taken)  # hard links, and case-insensitive file systems
        if same:
            raise InvalidOption(
                f"{option} and {other} would both use {path}: {taken} is the same file, or inside it; choose another path"
            )
    if options.output is not None and Path(options.output).exists() and not Path(options.output).is_dir():
        raise InvalidOption(f"--output {options.output} is a file; name a folder")
    for option, path in given:
        # The folder of --output is made, and those above it.
        made = options.output is not None and Path(options.output).absolute().is_relative_to(
            path.parent.absolute()
        )
        if not (path.parent.is_dir() or made or option.startswith("--output")):
            raise InvalidOption(f"{option} {path}: there is no folder {path.parent}")


def _continues(options: argparse.Namespace) -> bool:
    """Whether the run may continue an earlier one, whose files are appended to."""
    return options.resume is not None or options.store is not None


def _store(options: argparse.Namespace) -> Address | None:
    return None if options.store is None else shared_store(options.store)


async def _fetch(options: argparse.Namespace, signer: WebBotAuth | None) -> Exit:
    async with interrupts() as interrupt:
        try:
            status = await _run(options, signer, interrupt)
        except asyncio.CancelledError:
            if interrupt.status is None:
                raise
            return interrupt.status  # a third signal, while files were closed
    # A signal that arrived while files were closed counts as well.
    return interrupt.status or status


async def _run(options: argparse.Namespace, signer: WebBotAuth | None, interrupt: Interrupt) -> Exit:
    async with AsyncExitStack() as stack:
        clock = SystemClock()
        resumed: list[tuple[str, int, float | None]] = []
        if options.resume is not None:
            # Before a file is opened or made: this one may be no queue.
            resumed = await asyncio.to_thread(waiting_by_origin, Path(options.resume), MAX_ORIGINS)
        few = await _few(options, sum(waiting for _, waiting, _ in resumed))
        run_log = _run_log(options, stack, clock)
        stats = run_log.origin_stats
        for origin, (left_s, why) in (await asyncio.to_thread(_back_offs, options, clock.wall())).items():
            stats.back_offs[origin] = clock.monotonic() + left_s, why
        for each in resumed:
            stats.add_resumed(*each)
        archive = _archive(options, stack, run_log)
        validators = None
        if options.recrawl is not None:
            # Opened now, so that a file that cannot be used is known before the first request.
            validators = SqliteStore(options.recrawl, wall=clock.wall)
            stack.push_async_callback(validators.close)
            await validators.open()
        gate = await stack.enter_async_context(_gate(options, signer, run_log, clock, validators))
        max_waiting = _IN_FILE if _continues(options) else _IN_MEMORY
        frontier = await stack.enter_async_context(
            open_frontier(
                gate,
                store=_store(options) or options.resume,
                crawl=options.crawl,
                max_waiting=2 * max_waiting,
                max_tries=options.tries + _EXTRA_TRIES + int(options.max_outage / _OUTAGE_TRY_S),
                max_robots_tries=options.tries,
                max_outage=options.max_outage,
            )
        )
        if options.status is not None:
            await _serve_status(options.status, gate, frontier, stack)
        # After all that may refuse the run.
        await _keep_options(options, run_log.notes, frontier)
        pages = await stack.enter_async_context(Pages(options, gate))
        if archive is None and not options.quiet:
            complain("bodies are not kept; --output DIR or --warc FILE keeps them")
        run = Run(
            options=options,
            gate=gate,
            frontier=frontier,
            pages=pages,
            archive=archive,
            run_log=run_log,
            interrupt=interrupt,
            max_waiting=max_waiting,
            few=few,
        )
        return await run.finish()


async def _few(options: argparse.Namespace, waiting: int) -> int | None:
    """Return how many URLs may be listed, or None for any number. Raises InvalidOption, OSError.

    A crawler without a name of its own fetches only a few. A shared crawl is never so small.
    """
    if not is_unnamed(options):
        return None
    if options.store is not None:
        raise agent_needed("polite fetch --store")
    few = FEW - waiting
    again = 0
    if options.retry is not None and is_queue(Path(options.resume)):
        undone = (await asyncio.to_thread(QueueInspector(Path(options.resume)).totals)).notes
        again = sum(undone.get(kind, 0) for kind in retried(options))
    # The rest of a list is not read.
    limited = options.limit is not None and options.limit <= few
    lists = options.list or ()
    # The list may name those that are tried again.
    if few < again or not (limited or await asyncio.to_thread(are_few, few, options.urls, lists)):
        raise more_than_few()
    return None if limited else few


async def _keep_options(options: argparse.Namespace, notes: QueueNotes, frontier: Frontier) -> None:
    """Keep in the queue file what a later run must not change unnoticed. Raises InvalidOption, StoreFailed."""
    await notes.attach(frontier)
    if options.resume is None:
        return
    text = as_text(kept_of(options))
    if options.change:
        notes.keep_options(text)
        return
    found = await notes.options()
    if found != (None if options.kept is None else as_text(options.kept)):
        raise InvalidOption(
            f"--resume {options.resume}: another run has just begun or changed it; run this one again"
        )
    if found != text:
        notes.keep_options(text)


def _back_offs(options: argparse.Namespace, wall_s: float) -> dict[str, tuple[float, str]]:
    """Return by origin the back-offs of earlier runs that still run: seconds left, and why.

    Of a file that cannot be read now, the gate tells why.
    """
    path = f"{options.resume}{_ROBOTS}"
    if options.resume is None or not Path(path).is_file():
        return {}
    with suppress(StoreFailed), closing(StoreInspector(path)) as store:
        return {
            each["origin"]: (until - wall_s, each["back_off_because"])
            for each in islice(store.origins(), MAX_ORIGINS)
            if (until := each["back_off_until"] or 0.0) > wall_s
        }
    return {}


def _run_log(options: argparse.Namespace, stack: AsyncExitStack, clock: SystemClock) -> RunLog:
    """Open the output files; with --resume, those of the earlier run."""
    recorded: dict[str, str] = {}
    out, journal = sys.stdout, None
    # What a later run can read of the records.
    kept: Path | None = None
    if options.output is not None:
        kept = Path(options.output, RECORDS)
        kept.parent.mkdir(parents=True, exist_ok=True)
        stack.callback(lock("--output", kept).release)
        if is_begun(kept) and not _continues(options):
            raise InvalidOption(
                f"--output {options.output}: {RECORDS} already exists; choose another folder, or continue it with --resume"
            )
        out, recorded = reopen(kept, retry=options.retry is not None)
        stack.callback(out.close)
    elif options.resume is not None:
        kept = Path(options.resume + _JOURNAL)
        stack.callback(lock("--resume", kept).release)
        if not Path(options.resume).exists():
            kept.unlink(missing_ok=True)  # its queue was deleted
        journal, recorded = reopen(kept, retry=options.retry is not None)
        stack.callback(journal.close)
    repeated = RepeatedLines()
    stack.callback(repeated.close)
    resumed = options.resume is not None and Path(options.resume).exists()
    # In a shared crawl another process may have been given the same list.
    if kept is not None and has_urls(options) and (resumed or options.store is not None):
        repeated.read(kept)
    if has_urls(options) and resumed:
        for url, payload in waiting_payloads(Path(options.resume)):
            if "from" in source_of(payload):
                repeated.add_redirected(url)
    log = None
    if options.log is not None:
        path = Path(options.log)
        stack.callback(lock("--log", path).release)
        log = reopen_log(path) if _continues(options) else path.open("w", encoding="utf-8")
        stack.callback(log.close)
    # The queues of a shared crawl are not this run's alone.
    origin_stats = OriginStats(options.delay, counts_waiting=options.store is None)
    return RunLog(out, journal, recorded, repeated, origin_stats, log, clock)


def _archive(options: argparse.Namespace, stack: AsyncExitStack, run_log: RunLog) -> Archive | None:
    """Open what keeps bodies, and with a WARC file each robots.txt as it was sent."""
    if options.warc is None:
        return None if options.output is None else Folder(Path(options.output))
    warc = Warc(Path(options.warc), agent=options.agent.header, robots=options.dialect.name)
    stack.callback(lock("--warc", Path(options.warc)).release)
    stack.push_async_callback(warc.close)

    async def keep(captured: CapturedResponse) -> None:
        try:
            await warc.keep(captured)
        except (OSError, InvalidOption) as error:
            run_log.fail(error)  # if it were raised, robots.txt would count as unreachable

    stack.enter_context(capture_responses(keep))
    return warc


def _gate(
    options: argparse.Namespace,
    signer: WebBotAuth | None,
    run_log: RunLog,
    clock: SystemClock,
    validators: SqliteStore | None,
) -> AbstractAsyncContextManager[Gate]:
    # The queue keeps this back-off: a run that goes on after an outage waits for a tenth of it at most.
    retry_s = min(3_600.0, max(60.0, options.max_outage / 10))
    return open_gate(
        options.agent,
        robots=RobotsPolicy(
            dialect=options.dialect,
            nxdomain_retry=_NXDOMAIN_RETRY_S,
            retry_max=retry_s,
            # Also after a 503, and while the failures of robots.txt itself keep the site's circuit open.
            busy_retry_max=min(300.0, retry_s),
        ),
        store=_store(options) or (None if options.resume is None else options.resume + _ROBOTS),
        listener=run_log,
        clock=clock,
        recrawl=None if validators is None else RecrawlPolicy(),
        validators=validators,
        signer=signer,
        **crawl_options(options),
    )


async def _serve_status(port: int, gate: Gate, frontier: Frontier, stack: AsyncExitStack) -> None:
    """Serve the status page until the stack closes. Raises InvalidOption."""
    try:
        page = await stack.enter_async_context(serve(gate, frontier, port=port))
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else error
        raise InvalidOption(f"--status {port}: {why}; choose another port, or 0 for a free one") from error
    complain(f"status page: {page.url}")
