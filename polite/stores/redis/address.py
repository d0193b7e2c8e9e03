"""Address: where a shared store is, read from a URL, and what of it may be shown."""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from polite.errors import InvalidOption

# What the command line adds to an address without credentials: an argument can be read in the list of processes.
USER_VARIABLE, PASSWORD_VARIABLE = "POLITE_STORE_USER", "POLITE_STORE_PASSWORD"

_PORT, _SENTINEL_PORT = 6379, 26379
_MAX_DATABASE = 1_000_000


class Kind(Enum):
    """How the server that has a key is found."""

    SINGLE = "single"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


_EXAMPLES = {
    Kind.SINGLE: "redis://host:6379/0",
    Kind.SENTINEL: "redis+sentinel://host1:26379,host2:26379/service/0",
    Kind.CLUSTER: "redis+cluster://host1:6379,host2:6379",
}
# Scheme: kind, TLS.
_SCHEMES = {
    f"{name}{secure}{suffix}": (kind, bool(secure))
    for name in ("redis", "valkey")
    for secure in ("", "s")
    for suffix, kind in (("", Kind.SINGLE), ("+cluster", Kind.CLUSTER), ("+sentinel", Kind.SENTINEL))
}
_UNIX = "unix"
_TLS_PARAMETERS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")
_SENTINEL_PARAMETERS = ("sentinel_username", "sentinel_password")
_SERVICE = re.compile(r"[A-Za-z0-9._-]{1,200}")
_HOST = re.compile(r"\[[0-9A-Fa-f:.]+(?:%[\w.]+)?\]|[\w.-]+")


@dataclass(frozen=True, slots=True)
class Address:
    """An address of a shared store.

    >>> Address.of("rediss://user:secret@host/3")
    Address(name='rediss://host:6379/3')

    Attributes:
        name: The address as it may be shown: without credentials and parameters.
        nodes: Hosts and ports. Of Sentinels or of some nodes of a cluster they may be several.
        path: The Unix socket, or None.
        service: The name that Sentinels know the master by.
        options: The files for TLS.
        login, sentinel_login: User and password for the server, and for the Sentinels; None for none.
    """

    name: str
    kind: Kind = field(repr=False)
    secure: bool = field(repr=False)
    nodes: tuple[tuple[str, int], ...] = field(repr=False)
    path: str | None = field(repr=False, default=None)
    database: int = field(repr=False, default=0)
    service: str = field(repr=False, default="")
    options: Mapping[str, str] = field(repr=False, default_factory=dict)
    login: tuple[str | None, str | None] = field(repr=False, default=(None, None))
    sentinel_login: tuple[str | None, str | None] = field(repr=False, default=(None, None))

    @classmethod
    def of(cls, url: str) -> "Address":
        """Read a URL. Raises InvalidOption, which shows nothing that may be part of a password."""
        return _Reader(url).read()

    @property
    def has_login(self) -> bool:
        """Whether it has a user or a password."""
        return self.login != (None, None)

    def with_login_of(self, environment: Mapping[str, str] | None = None) -> "Address":
        """Return it with the credentials of the environment's variables, unless it has some."""
        given = os.environ if environment is None else environment
        login = (given.get(USER_VARIABLE) or None, given.get(PASSWORD_VARIABLE) or None)
        return self if self.has_login else replace(self, login=login)


def is_address(text: object) -> bool:
    """Return whether an option is a URL of a shared store, and no file's name."""
    return isinstance(text, str) and has_scheme(text) and text.partition(":")[2].startswith("//")


def has_scheme(text: str) -> bool:
    """Return whether a text begins as a URL of a shared store does, however it goes on."""
    scheme, colon, _ = text.partition(":")
    return bool(colon) and (scheme.lower() in _SCHEMES or scheme.lower() == _UNIX)


class _Reader:
    """Reads one URL. Its errors show values only if nothing in the URL can be credentials."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._scheme = url.partition(":")[0].lower()
        self._kind, self._secure = _SCHEMES.get(self._scheme, (Kind.SINGLE, False))

    def read(self) -> Address:
        if not is_address(self._url):
            schemes = ", ".join(f"{scheme}://" for scheme in (*_SCHEMES, _UNIX))
            raise self._error(f"must begin with one of {schemes}")
        if not self._url.isprintable() or " " in self._url:
            raise self._error("must not contain spaces or control characters")
        try:
            parts = urlsplit(self._url)
        except ValueError:
            raise self._error("has no valid host") from None
        if "@" in parts.path or "@" in parts.fragment or parts.fragment:
            raise self._error(
                "has a part that no address has; in a password, write @ / ? # : as %40 %2F %3F %23 %3A"
            )
        parameters = self._parameters(parts.query)
        address = self._unix(parts) if self._scheme == _UNIX else self._network(parts)
        user, password = (parameters.pop(name, None) for name in _SENTINEL_PARAMETERS)
        login = _login(parts.netloc)
        return replace(address, options=parameters, login=login, sentinel_login=(user, password))

    def _network(self, parts: SplitResult) -> Address:
        default = _SENTINEL_PORT if self._kind is Kind.SENTINEL else _PORT
        hosts = parts.netloc.rpartition("@")[2].split(",")
        if len(hosts) > 1 and self._kind is Kind.SINGLE:
            raise self._error("names several hosts, which only a cluster or Sentinels have")
        nodes = tuple(self._node(each, default) for each in hosts)
        service, database = self._service_and_database(parts.path)
        shown = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in nodes)
        place = "" if self._kind is Kind.CLUSTER else f"/{database}"
        name = f"{self._scheme}://{shown}{f'/{service}' if service else ''}{place}"
        return Address(name, self._kind, self._secure, nodes, None, database, service)

    def _unix(self, parts: SplitResult) -> Address:
        path = unquote(parts.path)
        if parts.netloc.rpartition("@")[2] or not path.startswith("/") or path == "/":
            raise self._error("must name the path of a socket", "unix:///run/valkey.sock?db=0")
        database = next((value for name, value in parse_qsl(parts.query) if name == "db"), "0")
        number = self._database(database)
        name = f"unix://{path}?db={number}"
        return Address(name, self._kind, secure=False, nodes=(), path=path, database=number)

    def _node(self, text: str, default: int) -> tuple[str, int]:
        found = _HOST.match(text)
        if found is None:
            raise self._error(f"has no valid host{self._shown(text)}")
        port = text[found.end() :] or f":{default}"
        if not re.fullmatch(r":[0-9]{1,5}", port) or not 1 <= int(port[1:]) <= 65_535:
            raise self._error(f"must have a port from 1 to 65535{self._shown(port[1:])}")
        return found[0].strip("[]"), int(port[1:])

    def _service_and_database(self, path: str) -> tuple[str, int]:
        first, _, rest = path.removeprefix("/").partition("/")
        match self._kind:
            case Kind.CLUSTER:
                if path not in ("", "/", "/0"):
                    raise self._error("names a database, but a cluster has only 0: leave it out")
                return "", 0
            case Kind.SENTINEL:
                if not _SERVICE.fullmatch(unquote(first)):
                    raise self._error("must name the service that the Sentinels watch")
                return unquote(first), self._database(rest or "0")
            case Kind.SINGLE:
                if rest:
                    raise self._error(f"must name one database{self._shown(path)}")
                return "", self._database(first or "0")

    def _database(self, text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,7}", text) or int(text) > _MAX_DATABASE:
            raise self._error(f"must have a number as its database{self._shown(text)}")
        return int(text)

    def _parameters(self, query: str) -> dict[str, str]:
        allowed = {
            *(_TLS_PARAMETERS if self._secure else ()),
            *(_SENTINEL_PARAMETERS if self._kind is Kind.SENTINEL else ()),
            *(("db",) if self._scheme == _UNIX else ()),
        }
        given = dict(parse_qsl(query, keep_blank_values=True))
        for name in given:
            if name not in allowed:
                options = ", ".join(sorted(allowed)) or "none"
                raise self._error(
                    f"has an unknown parameter{self._shown(name)}; here there are: {options} "
                    "(give a redis.asyncio client for others)"
                )
        return {name: value for name, value in given.items() if name != "db"}

    def _shown(self, value: str) -> str:
        """Return a value for a message, unless the URL may have credentials, perhaps mangled ones."""
        return "" if "@" in self._url or "password" in self._url else f", got {value[:100]!r}"

    def _error(self, wrong: str, example: str | None = None) -> InvalidOption:
        known = self._scheme in _SCHEMES or self._scheme == _UNIX
        shown = f"{self._scheme}://..." if known else "its URL"
        return InvalidOption(f"store: {shown} {wrong}; an example is {example or _EXAMPLES[self._kind]}")


def _login(netloc: str) -> tuple[str | None, str | None]:
    user, _, password = netloc.rpartition("@")[0].partition(":")
    return unquote(user) or None, unquote(password) or None
