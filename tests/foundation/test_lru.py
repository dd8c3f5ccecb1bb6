"""LRU caches against a list that is kept in order."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evidentia.foundation.lru import LruCache, SharedLruCache

KINDS = [LruCache, SharedLruCache]
calls = st.lists(st.tuples(st.sampled_from(("get", "put", "pop")), st.integers(0, 7), st.integers(0, 12)), max_size=60)


class NaiveCache:
    """A cache as a list of pairs, the last used at the end."""

    def __init__(self, max_count: int, max_weight: int | None) -> None:
        self.pairs: list[tuple[int, int]] = []
        self._max_count = max_count
        self._max_weight = max_weight

    def get(self, key: int) -> int | None:
        value = self.pop(key)
        if value is not None:
            self.pairs.append((key, value))
        return value

    def put(self, key: int, value: int) -> None:
        self.pop(key)
        self.pairs.append((key, value))
        while len(self.pairs) > self._max_count or (len(self.pairs) > 1 and self._is_too_heavy()):
            self.pairs.pop(0)

    def _is_too_heavy(self) -> bool:
        return self._max_weight is not None and sum(value for _, value in self.pairs) > self._max_weight

    def pop(self, key: int) -> int | None:
        value = dict(self.pairs).get(key)
        self.pairs = [pair for pair in self.pairs if pair[0] != key]
        return value


@pytest.mark.parametrize("kind", KINDS)
@given(max_count=st.integers(1, 5), max_weight=st.none() | st.integers(0, 20), made=calls)
def test_a_cache_does_what_a_list_in_order_does(
    kind: type[LruCache[int, int]], max_count: int, max_weight: int | None, made: list[tuple[str, int, int]]
) -> None:
    naive = NaiveCache(max_count, max_weight)
    cache = kind(max_count) if max_weight is None else kind(max_count, max_weight=max_weight, weigh=lambda value: value)
    for name, key, value in made:
        given_values = (key, value) if name == "put" else (key,)

        assert getattr(naive, name)(*given_values) == getattr(cache, name)(*given_values)
        assert naive.pairs == cache.items()
        assert [key for key, _ in naive.pairs] == list(cache)
        assert len(naive.pairs) == len(cache)


@pytest.mark.parametrize("kind", KINDS)
def test_a_look_whether_a_key_is_there_does_not_use_it(kind: type[LruCache[str, int]]) -> None:
    cache = kind(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert "a" in cache
    cache.put("c", 3)

    assert ["b", "c"] == list(cache)
    cache.clear()
    assert [] == cache.items()
    assert 0 == len(cache)


def test_the_newest_is_held_however_heavy_it_is_and_goes_first() -> None:
    cache: LruCache[str, str] = LruCache(max_weight=5, weigh=len)
    for key, value in (("a", "12"), ("b", "123456")):
        cache.put(key, value)

    assert [("b", "123456")] == cache.items()
    cache.put("c", "12345")
    assert [("c", "12345")] == cache.items()


def test_threads_share_a_cache_without_losing_its_bound() -> None:
    cache: SharedLruCache[int, int] = SharedLruCache(16, max_weight=40, weigh=lambda value: value % 7)
    problems: list[Exception] = []

    def work(seed: int) -> None:
        try:
            for number in range(2_000):
                key = (number * seed) % 50
                if cache.get(key) is None:
                    cache.put(key, key)
                if number % 17 == 0:
                    cache.pop(key)
        except Exception as error:  # noqa: BLE001 - any of them is the failure that is looked for
            problems.append(error)

    working = [threading.Thread(target=work, args=(seed,)) for seed in (3, 7, 11, 13)]
    for thread in working:
        thread.start()
    for thread in working:
        thread.join()

    assert [] == problems
    assert len(cache) <= 16
    assert cache._weight == sum(value % 7 for _, value in cache.items()) <= 40
