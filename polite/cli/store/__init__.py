"""`polite store`: what a crawler keeps between runs.

`command` reads a file of robots.txt results, `queue_file` the queue of a crawl, and `shared_store` a server that many processes
share. `origin_page` and `shared_origin` format what is known about one origin. `options` declares the options.
"""
