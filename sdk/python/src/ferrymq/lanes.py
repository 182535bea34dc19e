"""Which delivery starts next: order by key, within the bound of handlers."""

from __future__ import annotations

from collections import deque
from typing import Deque, Dict, List, Optional

from .leases import Held


class Lanes:
    """Deliveries that wait for a handler.

    The broker hands out one message of a key at a time. Only after a lost lease can the next delivery of a key be here while the
    handler of the one before still runs: it waits for its end.
    """

    def __init__(self) -> None:
        self._ready: Deque[Held] = deque()
        self._behind: Dict[str, Deque[Held]] = {}  # by keys that run

    def __len__(self) -> int:
        """How many wait."""
        return len(self._ready) + sum(map(len, self._behind.values()))

    def add(self, held: Held) -> None:
        """A delivery has come."""
        self._ready.append(held)

    def next(self) -> Optional[Held]:
        """The next delivery that may start, if there is one. Its key runs until done says otherwise."""
        while self._ready:
            held = self._ready.popleft()
            key = held.delivery.key
            if held.lost:
                continue
            if key in self._behind:
                self._behind[key].append(held)
                continue
            if key:
                self._behind[key] = deque()
            return held
        return None

    def done(self, held: Held) -> None:
        """The handler of a delivery that next returned has ended."""
        waiting = self._behind.pop(held.delivery.key, None)
        while waiting:
            self._ready.appendleft(waiting.pop())

    def clear(self) -> List[Held]:
        """Take out everything that has not started."""
        out = list(self._ready)
        self._ready.clear()
        for waiting in self._behind.values():
            out += waiting
            waiting.clear()
        return [held for held in out if not held.lost]
