"""How a handler ends other than by a return: it raises one of these."""

from __future__ import annotations

from typing import Optional

from .durations import Duration


class Outcome(Exception):
    """What becomes of the message. Any other exception is a failed attempt that is retried."""


class Retry(Outcome):
    """The attempt failed, and another is made after this time, or when message and server say so. After the last one it is dead."""

    def __init__(self, after: Optional[Duration] = None, error: str = "") -> None:
        super().__init__(error or "the handler asked for a retry")
        self.after = after


class Dead(Outcome):
    """The message becomes a dead letter at once. ``reason`` is a word to count by, ``error`` a text for people."""

    def __init__(self, reason: str = "rejected", error: str = "") -> None:
        super().__init__(error or reason)
        self.reason = reason


class Release(Outcome):
    """The message goes back as if it had not been received: no attempt is counted."""

    def __init__(self, after: Optional[Duration] = None) -> None:
        super().__init__("the handler released the message")
        self.after = after


class Drop(Outcome):
    """The message is discarded: settled, and no dead letter."""
