"""Work that threads share."""

import threading

import pytest

from caldist._util.threads import even_parts, in_threads


@pytest.mark.parametrize("threads", [1, 2, 5, 40])
def test_each_thing_is_done_once_and_in_its_place(threads):
    done = []

    def task(k):
        done.append(k)
        return k * k

    assert in_threads(task, range(20), threads) == [k * k for k in range(20)]
    assert sorted(done) == list(range(20))


def test_threads_work_side_by_side_and_the_one_that_asks_works_too():
    meeting = threading.Barrier(3)

    def task(_):
        meeting.wait(timeout=20)
        return threading.get_ident()

    assert threading.get_ident() in in_threads(task, range(3), 3)
    assert len(set(in_threads(task, range(3), 3))) == 3


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_a_task_raises_is_raised_and_ends_the_work(threads):
    begun = []

    def task(k):
        begun.append(k)
        if k == 7:
            raise KeyboardInterrupt
        return k

    with pytest.raises(KeyboardInterrupt):
        in_threads(task, range(1000), threads)
    assert 7 in begun
    assert len(begun) < 1000


def test_parts_are_even():
    assert even_parts(10, 3) == [(0, 3), (3, 6), (6, 10)]
    assert even_parts(0, 2) == [(0, 0), (0, 0)]
