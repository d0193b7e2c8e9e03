"""`polite timeline`: the requests of a run, drawn by origin over time."""
