"""UsageStatement: one statement of a site about one use of a page, and the line that makes it."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from polite.errors import redact_url

_SHOWN = 200


class UsageSource(Enum):
    """Where a statement was found.

    >>> UsageSource.ROBOTS.value
    'robots.txt'

    Attributes:
        ROBOTS: robots.txt.
        HEADER: a header field of the page's response.
        META: a meta element of the page.
        TDM_FILE: /.well-known/tdmrep.json (TDM Reservation Protocol).
    """

    ROBOTS = "robots.txt"
    HEADER = "response header"
    META = "meta element"
    TDM_FILE = "/.well-known/tdmrep.json"

    __hash__: Callable[..., int] = object.__hash__


class UsageStatement(NamedTuple):
    """One statement about one use.

        >>> from polite import usage
        >>> statement, = usage({"Content-Usage": "train-ai=n"}, None, "ExampleBot", "/a").statements
        >>> statement.use, statement.allowed, statement.source.value
        ('ai-train', False, 'response header')

    Attributes:
        use: the use, such as "ai-train"; the label of another vocabulary for it is in `text`.
        allowed: whether the use is allowed or refused.
        source: where it was found.
        text: the line, header or rule that states it, at most 200 characters.
        line: the line of robots.txt, or the rule of the TDM file, 1-based; None for headers and meta elements, and for a file
            that could not be read.
        careful: it is no valid statement, but can only mean a refusal. Nothing is allowed so.
    """

    use: str
    allowed: bool
    source: UsageSource
    text: str
    line: int | None = None
    careful: bool = False

    def __str__(self) -> str:
        verdict = "allowed" if self.allowed else "refused"
        number = (
            f", {'rule' if self.source is UsageSource.TDM_FILE else 'line'} {self.line}" if self.line else ""
        )
        doubt = ", which is no valid statement" if self.careful else ""
        return f"{self.use}: {verdict} by {redact_url(self.text)} ({self.source.value}{number}){doubt}"


SEARCH, AI_INPUT, AI_TRAIN = STANDARD = ("search", "ai-input", "ai-train")
# Images of a page (noimageai), and text and data mining (TDMRep): labels of ours for what no vocabulary names.
IMAGE_AI, TDM = "image-ai", "tdm"
# Labels of draft-ietf-aipref-vocab-08 (13 September 2026) for the uses that Content-Signal names first.
_SAME = {"train-ai": AI_TRAIN, "ai-use": AI_INPUT}
# What a refusal covers beside its own label: earlier versions of the vocabulary had wider categories, and other names.
_COVERED: Mapping[str, tuple[str, ...]] = {
    "bots": STANDARD,
    "all": STANDARD,
    "ai": (AI_INPUT, AI_TRAIN),
    "ai-output": (AI_INPUT,),
    "genai": (AI_TRAIN,),
    "train-genai": (AI_TRAIN,),
    TDM: (AI_INPUT, AI_TRAIN),
}
# Uses with other labels, beyond which others are dropped.
_MOST_OTHERS = 1_000
_NEVER_DROPPED = frozenset({*STANDARD, IMAGE_AI, TDM})


def use_of(label: str) -> str:
    """Return the use that a label names: `train-ai` is "ai-train". An unknown label is its own use."""
    return _SAME.get(label, label)


def statements(
    labels: Iterable[tuple[str, bool, bool]], source: UsageSource, text: str, line: int | None = None
) -> Iterator[UsageStatement]:
    """Iterate over the statements of one line.

    Args:
        labels: for each label whether it is allowed, and whether that is read with care.
    """
    text = text[:_SHOWN]
    for label, allowed, careful in labels:
        yield UsageStatement(use_of(label), allowed, source, text, line, careful)
        for use in () if allowed else _COVERED.get(label, ()):
            yield UsageStatement(use, False, source, text, line, careful)  # noqa: FBT003
        # `ai_train=no` is a label of no vocabulary, and can only mean one of these.
        if not allowed and "_" in label and (use := use_of(label.replace("_", "-"))) in STANDARD:
            yield UsageStatement(use, False, source, text, line, careful=True)  # noqa: FBT003


def by_use(found: Iterable[UsageStatement]) -> dict[str, tuple[UsageStatement, ...]]:
    """Group statements by use: refused uses first, and of each use refusals first.

    Of a use, the first statement of a verdict in each field of each source is kept.
    """
    kept: dict[str, dict[tuple[bool, UsageSource, str], UsageStatement]] = {}
    others = 0
    for each in found:
        if each.use not in kept:
            is_other = each.use not in _NEVER_DROPPED
            others += is_other
            if is_other and others > _MOST_OTHERS:
                continue
        field = each.text.partition(":")[0]
        kept.setdefault(each.use, {}).setdefault((each.allowed, each.source, field), each)
    sorted_by_use = {use: tuple(sorted(each.values(), key=_strictness)) for use, each in kept.items()}
    return dict(sorted(sorted_by_use.items(), key=lambda item: item[1][0].allowed))


def _strictness(statement: UsageStatement) -> tuple[bool, bool]:
    return statement.allowed, statement.careful
