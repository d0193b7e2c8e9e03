"""`polite fetch`: fetch a list of URLs through a frontier, and write one record per URL.

`command` builds a run from the `options`. `run` starts one task that puts the URLs of the list into the frontier, workers
that take permits and fetch pages (`page`), and one task that prints `progress`. Each URL ends in one JSON record (`record`), its
body in a folder or a WARC file (`archive`). `record.RunLog` receives what the run and the gate's events report. It passes that to
the records, to the event log for `polite timeline`, and to the statistics by origin that `progress` shows.

With `--resume` the frontier keeps its queue in a file, and `queue_file` keeps there which URLs were not fetched and the options. A
record is written before its task is finished in that queue: after a crash, `record.reopen` reads the last records, so that no page
is fetched or recorded twice. Standard output cannot be read again: then a journal beside the queue has what later runs need.
`record.RepeatedLines` tells which lines have a record already.
"""
