"""The crawlers that are measured side by side, each a program of its own: HOSTS PAGES DELAY PORT."""
