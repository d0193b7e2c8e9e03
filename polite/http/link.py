"""Link (RFC 8288, 3): the links of a response, each with its parameters."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from polite.http.parameters import PARAMETER, first_of_each

# Characters of a field and links that are read: far more than any honest response has.
_LONGEST = 16_384
_MOST_LINKS = 200
_LINK = re.compile(rf"<([^<>]*+)>((?:[ \t]*+;[ \t]*+(?:{PARAMETER})?+)*+)")


class Link(NamedTuple):
    """One link.

    Attributes:
        target: the URL as written, perhaps relative.
        parameters: the names in lower case, each with its first value (RFC 8288, 3.3 and 3.4.1).
    """

    target: str
    parameters: Mapping[str, str]

    def has_relation(self, relation: str) -> bool:
        """Return whether it has this relation type, in lower case. Relation types ignore case (RFC 8288, 2.1.1)."""
        return relation in self.parameters.get("rel", "").lower().split()


def links(text: str) -> Iterator[Link]:
    """Iterate over the links of a field. What is malformed is skipped, up to the next `<`.

    >>> [link.target for link in links('</style.css>; rel="preload", <https://example.com/l.xml>; rel=license')]
    ['/style.css', 'https://example.com/l.xml']
    """
    for found in islice(_LINK.finditer(text[:_LONGEST]), _MOST_LINKS):
        yield Link(found[1].strip(), first_of_each(found[2]))
