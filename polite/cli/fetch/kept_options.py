"""The options of a crawl that its queue file keeps: what is sent, how fast, and to which addresses."""

import argparse
import json
from collections.abc import Callable, Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from polite.cli.fetch.options import SECRET, merged
from polite.cli.fetch.queue_notes import OPTIONS
from polite.cli.options import DEFAULT_AGENT
from polite.errors import InvalidOption, StoreFailed
from polite.frontier.sqlite.inspector import kept_note

# By option: a string, a list of strings for one that may be repeated, True for a switch. None is for an option that is not used.
Kept = dict[str, Any]

_SECRET = "(not kept, digest "  # noqa: S105 - what stands for the value


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.15g}"


def _header(fields: list[tuple[str, str]] | None) -> list[str] | None:
    """Return the fields as text. Two octets of a digest tell another secret from this one, and do not help to guess it."""
    shown = [
        f"{name}: {_SECRET}{blake2b(value.encode(), digest_size=2).hexdigest()})"
        if name.lower() in SECRET
        else f"{name}: {value}"
        for name, value in merged(fields or ()).items()
    ]
    return sorted(shown) or None


# What changes neither the pace nor the requests may differ between runs: outputs, --concurrency, --tries, --timeout.
_TEXT: dict[str, Callable[[Any], object]] = {
    "agent": lambda agent: None if agent.header == DEFAULT_AGENT else agent.header,
    "header": _header,
    "delay": _number,
    "long-delay": str,
    "back-off-on": lambda statuses: sorted(map(str, statuses)) if statuses else None,
    "max-pages": _number,
    "max-origin-bytes": _number,
    "max-failures": _number,
    "max-bytes": _number,
    "max-redirects": _number,
    "dialect": lambda dialect: dialect.name,
    "allow-private": lambda on: on or None,
    "resolve": lambda names: (
        sorted(f"{name}:{address}" for name, address in names.items()) if names else None
    ),
    "sign": lambda key: key,
    "signature-agent": lambda url: url,
    "signature-agent-as-string": lambda on: on or None,
}


def kept_of(options: argparse.Namespace) -> Kept:
    """Return what the queue file is to keep of these options."""
    return {name: text(_value(options, name)) for name, text in _TEXT.items()}


def as_text(kept: Kept) -> str:
    """Return the options as the queue file has them."""
    return json.dumps(kept, sort_keys=True)


def read(options: argparse.Namespace) -> Kept | None:
    """Return the options that the queue file keeps, or None. Raises InvalidOption if they are damaged, except with `--change`."""
    try:
        note = kept_note(Path(options.resume), OPTIONS)
        return None if note is None else json.loads(note.value)
    except (StoreFailed, ValueError) as error:
        if options.change:
            return None
        raise InvalidOption(
            f"--resume {options.resume}: the options that it keeps are damaged; pass those of the first run again, with --change"
        ) from error


def arguments(kept: Kept, given: argparse.Namespace) -> Iterator[str]:
    """Yield the arguments that stand for kept options, to be overruled by those that are given now.

    Of an option that may be repeated, only those given now count, but a secret field is given beside those that are kept.
    Raises InvalidOption for a secret that is needed again.
    """
    fields = {name.lower() for name in merged(given.header or ())}
    for name, value in kept.items():
        match value:
            case True:
                yield f"--{name}"
            case str():
                yield f"--{name}={value}"
            case list() if not _value(given, name) or (name == "header" and not given.change):
                for each in value:
                    field = each.partition(":")[0]
                    if name != "header" or field.lower() not in SECRET:
                        yield f"--{name}={each}"
                    elif field.lower() not in fields:
                        raise InvalidOption(
                            f"--resume {given.resume}: the value of --header {field} is not kept in the file; pass it again"
                        )


def require_same(kept: Kept, options: argparse.Namespace) -> None:
    """Raise InvalidOption if an option has another value than at the beginning. A crawl without a name may be given one."""
    for name, value in kept_of(options).items():
        if value != (before := kept.get(name)) and (name, before) != ("agent", None):
            raise InvalidOption(
                f"--resume {options.resume}: the crawl has {_shown(name, before)}, and this run {_shown(name, value)}; "
                "leave the option out, or pass --change to go on with the new value"
            )


def _value(options: argparse.Namespace, name: str) -> Any:  # noqa: ANN401 - each option has a type of its own
    return getattr(options, name.replace("-", "_"))


def _shown(name: str, value: object) -> str:
    match value:
        case None:
            return f"no --{name}"
        case True:
            return f"--{name}"
        case list():
            return " ".join(f"--{name} {each!r}" for each in value)
        case _:
            return f"--{name} {value!r}" if " " in str(value) else f"--{name} {value}"
