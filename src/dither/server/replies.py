"""Keeps stored answers as data, if they were given again a short time ago.

A stored answer in the words of one question is the same each time, but for what is left of the budget: that is no part of what
is kept, and is added anew. Whether an answer may be given, and whether it counts in a quota, was decided by the ledger before.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any

MOST = 256  # answers
LARGEST = 1_000_000  # characters of all together


def write(data: Mapping[str, Any]) -> str:
    return json.dumps(data, ensure_ascii=False, allow_nan=False)


class Replies:
    """The data of recent answers, as many as fit. Threads may share it; nobody may change what it returns."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[Mapping[str, Any], int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def find(self, key: Hashable, make: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
        """Returns the data of an answer. `make` is called if it is not here."""
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
                return found[0]
        data = make()
        size = len(write(data))
        with self._lock:
            self._size += size - self._kept.pop(key, ({}, 0))[1]
            self._kept[key] = data, size
            while self._kept and (self._size > LARGEST or len(self._kept) > MOST):
                self._size -= self._kept.popitem(last=False)[1][1]
        return data
