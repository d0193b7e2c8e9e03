"""A live status page of one gate and its frontier: who waits, for what, and since when.

    async with polite.status.serve(gate, frontier, port=8080) as page:
        print(page.url)

Theory of operation. Counters are read once a second (`monitor`), and events are counted as they come (`recorder`), so a permit
costs nothing more. Which origins wait, and why, is found by walks over all origin queues (`survey`) in slices of two
milliseconds. Walks run only while a browser or a script reads the page. An answer is made of what the last walk found, so its
cost does not grow with the number of origins. Each list is bounded. What fails here is logged, and never reaches the crawl.

The page (`page/`) is plain HTML, CSS and one script, without a build step, and without anything from another host. It gets
server-sent events (`streams`) and shows each text from outside as text. `access` decides who may see it.
"""

from polite.status.serving import StatusPage, serve

__all__ = ["StatusPage", "serve"]
