"""`polite doctor`: what a site's operator would say of a crawler's User-Agent header, and of the page that it names.

`names.py` checks the header, without a network. `page.py` checks the page. Each says which section of the best practices it is
about (draft-illyes-webbotauth-cbcp-01, October 2026); `command.py` prints them, and which practices hold.
"""
