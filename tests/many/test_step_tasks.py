"""step.lua, steps 4 and 5: tasks that end, puts, what was met, and tasks that wait again."""

import pytest

from tests.many.servers import ValkeyServer
from tests.many.stepping import Crawl

A, B, C = (f"https://a.example/{each}" for each in "abc")


@pytest.fixture
def crawl(valkey: ValkeyServer) -> Crawl:
    return Crawl(valkey)


def test_put_tasks_are_picked_in_the_order_of_puts(crawl: Crawl) -> None:
    one, other = crawl.process("one"), crawl.process("other")

    numbers = one.put(B, A, C).puts

    assert numbers == sorted(number for number in numbers if number)
    assert other.pick() == {"https://a.example": ["/b", "/a", "/c"]}
