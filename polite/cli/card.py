"""`polite card`: write the key directory and the card of a crawler, to be served by its operator."""

import argparse
import json
import time
from pathlib import Path, PurePosixPath

from polite.cli.doctor import page_of
from polite.cli.terminal import Exit, counted
from polite.errors import InvalidOption
from polite.origin import Target
from polite.signing.card import WELL_KNOWN, crawler_card, directory_fields, key_directory
from polite.signing.key import SigningKey
from polite.signing.web_bot_auth import WebBotAuth

CARD = "/.well-known/signature-agent-card.json"
FIELDS = "directory-fields.txt"
_DAY_S = 86_400


def card(options: argparse.Namespace) -> Exit:
    """Make a key, or write the files. Raises InvalidOption, InvalidURL, OSError."""
    if options.new:
        for name in ("signature-agent", "output", "also"):
            if getattr(options, name.replace("-", "_")):
                raise InvalidOption(f"--new makes a key only; leave --{name} out, and run it again")
        made = SigningKey.make(options.key)
        print(f"{options.key}: a new Ed25519 key, which only you can read, thumbprint {made.thumbprint}")
        return Exit.ALLOWED
    if options.signature_agent is None or options.output is None:
        raise InvalidOption("--signature-agent URL and --output DIR are needed; or --new: a key in KEY")
    keys = [SigningKey.read(name) for name in (options.key, *options.also)]
    keys_url = _keys_url(WebBotAuth(keys[0], options.signature_agent).signature_agent)
    card_url = f"{keys_url.origin}{CARD}"
    body = key_directory(keys)
    authority = keys_url.origin.text.partition("://")[2]
    fields = directory_fields(keys, body, authority, time.time(), options.days * _DAY_S)
    described = crawler_card(
        options.agent,
        card_url,
        keys_url.url,
        about=options.about or page_of(options.agent.header),
        contacts=options.contact,
        purpose=options.purpose,
        ranges=options.ip_ranges,
    )
    folder = Path(options.output)
    _write(folder, keys_url.path, body)
    _write(folder, CARD, json.dumps(described, indent=2).encode() + b"\n")
    _write(folder, FIELDS, "".join(f"{name}: {value}\n" for name, value in fields.items()).encode())
    print(f"{keys_url.url}  {counted(len(keys), 'key')}, with the fields of {FIELDS}")
    print(f"{card_url}  {described['client_name']}")
    print(
        f"serve these files; write them again within {options.days} days, when the signatures of {FIELDS} expire"
    )
    return Exit.ALLOWED


def _keys_url(signature_agent: str) -> Target:
    """Return the URL of the directory: for an origin, the well-known one there."""
    target = Target.of(signature_agent)
    if target.path == "/":
        return Target(target.origin, WELL_KNOWN)
    if "?" in target.path or target.path.endswith("/"):
        raise InvalidOption(
            f"--signature-agent {signature_agent}: a file must be served there, so it has no query and does not end with /"
        )
    return target


def _write(folder: Path, path: str, content: bytes) -> None:
    # The path of a canonical URL has no `..`.
    file = folder.joinpath(*PurePosixPath(path).parts[1:] if path.startswith("/") else (path,))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
