"""URLs that were seen: queued ones exactly, finished ones up to a limit."""

from polite.frontier.task_store import SeenUrls


def test_a_url_is_held_once() -> None:
    seen = SeenUrls(10)

    assert [seen.hold("a"), seen.hold("a"), seen.hold("b")] == [True, False, True]
    assert (seen.seen("a"), seen.seen("c")) == (True, False)


def test_what_is_done_may_be_held_again_only_when_asked() -> None:
    seen = SeenUrls(10)
    seen.hold("a")
    seen.finish("a")

    assert (seen.seen("a"), seen.seen("a", again=True)) == (True, False)
    assert (seen.hold("a"), seen.hold("a", again=True), seen.hold("a", again=True)) == (False, True, False)


def test_of_what_is_done_the_oldest_is_forgotten_and_nothing_that_is_held() -> None:
    seen = SeenUrls(2)
    seen.hold("held")
    for url in "abc":
        seen.hold(url)
        seen.finish(url)

    assert len(seen) == 3
    assert [seen.seen(url) for url in ("held", "a", "b", "c")] == [True, False, True, True]
