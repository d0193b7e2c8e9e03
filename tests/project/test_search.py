"""The site's search finds each public name, field and command first. How its script orders results is modelled here."""

import re

from docs.website.search import ordered
from tests.project.test_api_reference import PAGES, ROOT, classes, entries_of


def place(query: list[str], text: str) -> tuple[int, int]:
    """The more words of a query begin words of a text, and the earlier, the better. A space stands before each word."""
    found: set[int] = set()
    for word in query:
        places = (text[: match.start()].count(" ") for match in re.finditer(word, text))
        found.update([at for at in places if at not in found][:1])
    return -len(found), sum(found)


def test_a_search_for_a_public_name_or_a_command_finds_its_entry_first() -> None:
    items = []
    for file in (ROOT / "docs").rglob("*.md"):
        page = file.relative_to(ROOT / "docs").with_suffix(".html")
        entries = entries_of(file) if file in PAGES else []
        fields = [f"{entry}.{name}" for entry, cls in classes() for name in cls.members if entry in entries]
        for title in [*re.findall(r"^#+ (.+)", file.read_text(), re.MULTILINE), *entries, *fields]:
            item = {"title": title, "level": 2 + (title in fields), "path": [], "text": ""}
            items.append(item | {"location": f"{page}#{title.replace(' ', '-')}"})
    # The builder's separator, by default.
    index = ordered({"config": {"separator": r"[\s\-_,:!=\[\]()\\\"`/]+|\.(?!\d)"}, "items": items})

    def words(text: str) -> list[str]:
        split = re.split(index["config"]["separator"], re.sub("<[^>]*>", " ", text).lower())
        return [f" {word}" for word in split if word]

    shown = {}
    for item in index["items"]:
        texts = (item["title"], " ".join(item["path"]), item["text"])
        shown[item["location"]] = ["".join(words(text)) for text in texts]
    for location in shown:
        if match := re.search(r"#(?:polite\.(?:.+\.)?(?![A-Z_]+$)(?=[^_])|(?=polite-))([\w-]+)$", location):
            query = words(match[1])
            having = [at for at, texts in shown.items() if all(word in "".join(texts) for word in query)]
            found = min(having, key=lambda at: [place(query, text) for text in shown[at]])
            assert found.lower().endswith(match[1].lower()), location
