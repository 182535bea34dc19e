"""How long to wait before the next try."""

from __future__ import annotations

import random


class Backoff:
    """Pauses that grow from ``first`` to ``most`` seconds, each with full jitter, so that many clients do not come back at once."""

    def __init__(self, first: float = 0.1, most: float = 2.0) -> None:
        self._first = first
        self._most = most
        self.reset()

    def reset(self) -> None:
        """It went well: begin again with the first pause."""
        self._next = self._first

    def pause(self) -> float:
        """The next pause in seconds."""
        pause, self._next = self._next, min(self._most, 2 * self._next)
        return random.uniform(0, pause)
