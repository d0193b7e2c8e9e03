"""llms.txt: the site as a list of plain-text pages, in the form of llmstxt.org (proposal of 2024-09-03)."""

import re
from collections.abc import Collection, Iterator, Mapping

from docs.website.navigation import Section

_MOST_OF_A_NOTE = 200
_FENCED = re.compile(r"^(```|~~~).*?^\1$", re.MULTILINE | re.DOTALL)
# No heading, list, table, picture or directive.
_PARAGRAPH = re.compile(r"[\w`*_\[]")


def llms_txt(navigation: Section, texts: Mapping[str, str], optional: Collection[str]) -> str:
    """Return the list: a title, a summary as a quotation, and a section of links with a note each.

    Args:
        navigation: The site's navigation.
        texts: The Markdown of each page. The links lead to it, not to the HTML.
        optional: Titles of sections that are put under "Optional": a reader who has little space may leave them out.
    """
    home = texts["index.md"]
    lines = [f"# {title(home)}", "", f"> {summary(home)}", ""]
    rest: list[str] = []
    for entry in navigation.entries:
        if isinstance(entry, str):
            continue
        links = [_link(page, texts[page]) for page in entry.pages()]
        if entry.title in optional:
            rest += links
        else:
            lines += [f"## {entry.title}", "", *links, ""]
    if rest:
        lines += ["## Optional", "", *rest, ""]
    return "\n".join(lines)


def llms_full_txt(navigation: Section, texts: Mapping[str, str], optional: Collection[str]) -> str:
    """Return the text of every page that is not optional, in the order of the navigation."""
    return "\n".join(_whole(navigation, texts, optional))


def _whole(navigation: Section, texts: Mapping[str, str], optional: Collection[str]) -> Iterator[str]:
    for entry in navigation.entries:
        if isinstance(entry, str):
            yield f"<!-- {entry} -->\n{texts[entry]}"
        elif entry.title not in optional:
            yield from _whole(entry, texts, optional)


def _link(page: str, text: str) -> str:
    note = summary(text)
    return f"- [{title(text)}]({page})" + (f": {note}" if note else "")


def title(text: str) -> str:
    """Return a page's heading, without backticks."""
    return next(line[2:] for line in text.splitlines() if line.startswith("# ")).replace("`", "")


def summary(text: str) -> str:
    """Return the first sentence of a page's first paragraph as plain text, or "" if it has no paragraph."""
    prose = _FENCED.sub("", text.partition("# ")[2].partition("\n")[2])
    paragraphs = (" ".join(part.split()) for part in prose.split("\n\n"))
    first = next((part for part in paragraphs if _PARAGRAPH.match(part)), "")
    plain = re.sub(r"\*\*|`", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", first))
    sentence = re.split(r"(?<=[.!?]) (?=[A-Z])", plain)[0]
    if len(sentence) <= _MOST_OF_A_NOTE:
        return sentence
    return sentence[: _MOST_OF_A_NOTE - 1].rsplit(" ", 1)[0] + " …"
