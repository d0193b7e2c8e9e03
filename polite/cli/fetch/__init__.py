"""`polite fetch`: a list of URLs, fetched politely through a frontier."""
