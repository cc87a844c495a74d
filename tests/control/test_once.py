"""What was told is remembered, up to a bound, by all threads together."""

from concurrent.futures import ThreadPoolExecutor

from horarium.control.once import Once


def test_only_the_first_of_each_is_the_first() -> None:
    once = Once()
    assert [once.is_first(what) for what in ("a", "b", "a", "a", "b")] == [True, True, False, False, False]


def test_beyond_its_bound_the_oldest_is_forgotten() -> None:
    once = Once(remembers=2)
    for what in ("a", "b", "c"):
        assert once.is_first(what)
    assert [once.is_first(what) for what in ("c", "b", "a")] == [False, False, True]


def test_of_many_threads_one_is_the_first() -> None:
    once = Once()
    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: once.is_first(number % 10), range(1_000)))
    assert sum(found) == 10
