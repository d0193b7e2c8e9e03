"""`RuleSet.memory` is about what rules take once they have been asked: never far too little, whatever the file."""

import gc
import tracemalloc

import pytest

from polite.robots.parse import parse

FEW = 6_000
FILES = {
    "short": b"".join(b"Disallow: /%d\n" % n for n in range(FEW)),
    "all alike": b"Disallow: /a\n" * FEW,
    "a head for each": b"".join(b"Disallow: /%d*x%d\n" % (n, n) for n in range(FEW)),
    "one head": b"".join(b"Disallow: /*%d*x%d\n" % (n, n) for n in range(FEW)),
    "a crowd": b"".join(b"Disallow: /*a*%d\n" % n for n in range(FEW)),
    "heads within heads": b"".join(b"Disallow: /%s*%d\n" % (b"a" * (n // 24), n) for n in range(FEW)),
    "escapes": b"".join(b"Disallow: /%%C3%%BC%d*%%2A\n" % n for n in range(FEW)),
    "octets": b"".join(b"Disallow: /\xc3\xbc%d\n" % n for n in range(FEW)),
    "long": b"".join(b"Disallow: /%d%s\n" % (n, b"\xfc" * 1_000) for n in range(100)),
    "long with stars": b"".join(b"Disallow: /*%d%s\n" % (n, b"x*" * 500) for n in range(100)),
    "both": b"".join(b"%s: /%d*y\n" % ((b"Allow", b"Disallow")[n % 2], n) for n in range(FEW)),
}


@pytest.mark.slow("measures memory of large files", rows=["a crowd", "heads within heads"])
@pytest.mark.parametrize("rules", FILES.values(), ids=FILES)
def test_the_estimate_is_no_less_than_what_was_measured_and_no_more_than_six_times_that(rules: bytes) -> None:
    body = b"User-agent: *\n" + rules
    questions = [f"/{n}x{n}xx" for n in range(2_000)] + [f"/{'a' * n}{n}" for n in range(250)]
    parse(body).rules_for("anybot").decide("/")  # what is made once
    gc.collect()

    tracemalloc.start()
    asked = parse(body).rules_for("anybot")
    for path in questions:
        asked.allows(path)
    gc.collect()
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken <= asked.memory <= 6 * taken
