"""A terminal of a fixed size, as far as a live display needs one: lines, the cursor, and erasing."""

import re

_TOKEN = re.compile(
    r"\x1b\[(?P<number>\??[0-9;]*)(?P<end>[A-Za-z])|(?P<control>[\r\n])|(?P<text>[^\x1b\r\n]+)"
)


class Screen:
    """Shows what was written.

    Attributes:
        wrapped: the lines that were longer than the screen is wide.
    """

    def __init__(self, columns=80, rows=24):
        self._columns, self._rows = columns, rows
        self._lines = [""]
        self._row = self._column = 0
        self.wrapped = []

    @property
    def lines(self):
        """The lines that are seen, without spaces at the end."""
        return [line.rstrip() for line in self._lines[-self._rows :]]

    def write(self, text):
        for token in _TOKEN.finditer(text):
            match token["end"], token["control"]:
                case "A", _:
                    self._row = max(0, self._row - int(token["number"] or 1))
                case "K", _:
                    self._lines[self._row] = ""
                case None, "\r":
                    self._column = 0
                case None, "\n":
                    self._row, self._column = self._row + 1, 0
                    if self._row == len(self._lines):
                        self._lines.append("")
                case None, None:
                    self._put(token["text"])

    def _put(self, text):
        before = self._lines[self._row].ljust(self._column)
        self._column += len(text)
        self._lines[self._row] = before[: self._column - len(text)] + text + before[self._column :]
        if self._column > self._columns:
            self.wrapped.append(self._lines[self._row])
