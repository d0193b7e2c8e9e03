"""--resolve: addresses of hosts, as HOST:ADDRESS or HOST:PORT:ADDRESS."""

import argparse
import re
from typing import cast

from polite.errors import InvalidOption

_FORM = "HOST:ADDRESS or HOST:PORT:ADDRESS, with an IPv6 address in brackets"
# An address may have a port of its own.
_PARTS = re.compile(
    r"(?P<name>[^:\[\]]+(?::[0-9]{1,5}(?=:))?):(?P<address>(?:[^:\[\]]+|\[[^\[\]]+\])(?::[0-9]{1,5})?)",
    re.ASCII,
)


class NamedHost(argparse.Action):
    """Collects the hosts in a mapping for `open_gate(resolver=)`. A host may be named once."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option: str | None = None,
    ) -> None:
        names: dict[str, str] = getattr(namespace, self.dest) or {}
        name, address = cast("tuple[str, str]", values)
        if name in names:
            parser.error(f"{option} names {name} twice")
        setattr(namespace, self.dest, {**names, name: address})


def named_host(text: str) -> tuple[str, str]:
    """Return the host, perhaps with a port, and its address. Raises InvalidOption."""
    # Imported here: it loads the HTTP client.
    from polite.transports.named_hosts import parsed_names

    found = _PARTS.fullmatch(text)
    if found is None:
        raise InvalidOption(f"--resolve must be {_FORM}, got {text!r}")
    name, address = found["name"], found["address"]
    try:
        parsed_names({name: address})
    except InvalidOption as error:
        raise InvalidOption(f"{str(error).removeprefix('resolver: ')}; write --resolve {_FORM}") from None
    return name.lower(), address
