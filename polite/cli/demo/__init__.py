"""`polite demo`: a small web of sixteen hosts on loopback, a crawler, and what the servers saw of it."""
