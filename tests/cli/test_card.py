"""`polite card`: the files that a crawler publishes, and its key."""

import json
import stat
from pathlib import Path

import pytest

from polite.cli.main import main
from polite.signing.key import SigningKey

AGENT = "Mozilla/5.0 (compatible; AcmeBot/1.0; +https://acme.dev/bot)"


@pytest.fixture
def key(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return SigningKey.make("key.pem")


def test_a_new_key_is_made_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert main(["card", "key.pem", "--new"]) == 0

    made = capsys.readouterr().out
    assert SigningKey.read("key.pem").thumbprint in made
    assert "PRIVATE" not in made
    assert stat.S_IMODE(Path("key.pem").stat().st_mode) == 0o600
    assert main(["card", "key.pem", "--new"]) == 2
    assert "the file exists, and is not replaced" in capsys.readouterr().err


def test_the_files_are_those_that_servers_look_for(key, capsys):
    more = ["--contact", "mailto:bot@acme.dev", "--purpose", "search"]
    ranges = ["--ip-ranges", "https://acme.dev/ranges.json"]
    where = ["--signature-agent", "https://bot.acme.dev", "--output", "site", "--agent", AGENT]

    assert main(["card", "key.pem", *where, *more, *ranges]) == 0

    keys = json.loads(Path("site/.well-known/http-message-signatures-directory").read_bytes())
    assert keys == {"keys": [key.public_jwk]}
    fields = Path("site/directory-fields.txt").read_text()
    assert fields.startswith("Content-Type: application/http-message-signatures-directory+json\n")
    assert 'Signature-Input: binding=("@authority";req "content-digest");created=' in fields
    assert json.loads(Path("site/.well-known/signature-agent-card.json").read_text()) == {
        "client_id": "https://bot.acme.dev/.well-known/signature-agent-card.json",
        "client_name": "AcmeBot",
        "client_uri": "https://acme.dev/bot",
        "contacts": ["mailto:bot@acme.dev"],
        "jwks_uri": "https://bot.acme.dev/.well-known/http-message-signatures-directory",
        "web_bot_auth": {
            "expected-user-agent": AGENT,
            "rfc9309-product-token": "AcmeBot",
            "rfc9309-compliance": True,
            "trigger": "crawler",
            "purpose": "search",
            "rate-control": "Crawl-delay and Request-rate in robots.txt; 429 and 503 with Retry-After",
            "known-urls": ["/robots.txt"],
            "ips_uri": "https://acme.dev/ranges.json",
        },
    }
    assert "within 30 days" in capsys.readouterr().out


FILES = "key.pem --output site --signature-agent https://a.dev"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("key.pem --output site", "--signature-agent URL and --output DIR are needed; or --new"),
        ("new.pem --new --output site", "leave --output out"),
        ("new.pem --new --also key.pem", "leave --also out"),
        (FILES.replace("key", "none"), "No such file"),
        (FILES.replace("https", "http"), "--signature-agent must be an https URL"),
        (f"{FILES}/k?v=1", "it has no query"),
        (f"{FILES}/k/", "does not end with /"),
        (f"{FILES} --also key.pem", "each key once"),
        (f"{FILES} --contact me", "a contact must be a URI such as mailto:"),
        (f"{FILES} --ip-ranges http://a.dev/r", "a card names https URLs only"),
    ],
)
def test_what_cannot_be_is_one_line_and_nothing_is_written(arguments, says, key, capsys):
    assert main(["card", *arguments.split()]) == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1
    assert not Path("site").exists()
