"""`polite timeline`: draw the log of a `polite fetch` run as SVG.

`log_entry` reads the log that `polite fetch --log` writes, line by line, and checks each value: the file may come
from anywhere. Logs of resumed runs follow one another on one time axis. `svg` reads the entries twice: first to
choose the origins with the most entries, then to mark them. Marks closer than half a pixel become one, so the size of
the picture does not grow with the length of the run. The same log always gives the same picture.
"""
