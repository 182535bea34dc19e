"""Dead letters, by the admin API: a token with the scope view sees them, one with operate replays them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Dict, Mapping, Optional

from . import bodies
from .delivery import read_time


@dataclass(frozen=True)
class DeadLetter:
    """A message that was given up, with why."""

    id: str
    topic: str
    group: str
    key: str
    #: The body, or None if the token lacks the scope payload (``hidden``).
    value: Any
    headers: Mapping[str, str]
    hidden: bool
    reason: str
    error: str
    attempts: int
    #: What could be done about it: retry, manual_review, …
    action: str
    died_at: Optional[datetime]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "DeadLetter":
        """The dead letter that the server wrote."""
        dead: Dict[str, Any] = data.get("dead") or {}
        hidden = bool(data.get("hidden"))
        return cls(
            id=data["id"],
            topic=data["topic"],
            group=data.get("group", ""),
            key=data.get("key", ""),
            value=None if hidden else bodies.to_value(data),
            headers=data.get("headers") or {},
            hidden=hidden,
            reason=dead.get("reason", ""),
            error=dead.get("error", ""),
            attempts=dead.get("attempts", 0),
            action=dead.get("action", ""),
            died_at=read_time(dead.get("died_at")),
        )


@dataclass(frozen=True)
class Replay:
    """What a replay did, or would do."""

    done: int
    skipped: int
    #: What was skipped, by reason.
    why: Mapping[str, int]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Replay":
        """The report that the server wrote."""
        return cls(done=data["done"], skipped=data["skipped"], why=data.get("why") or {})
