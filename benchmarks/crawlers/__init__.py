"""The crawlers that are compared, each a program with arguments HOSTS PAGES DELAY PORT."""
