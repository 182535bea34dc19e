"""Results: how far a message is, and what its handler returned."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Mapping, Optional

from . import bodies
from .delivery import read_time


@dataclass(frozen=True)
class Result:
    """What is known of a message in a group."""

    #: waiting, running, retrying, done, failed or cancelled.
    state: str
    #: Nothing more is to come.
    ended: bool
    #: What the handler returned, when it is done.
    value: Any
    attempt: int
    #: Why the last attempt failed.
    error: str
    #: How much is done of how much, and a note.
    done: int
    total: int
    note: str
    at: Optional[datetime]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Result":
        """The result that the server wrote."""
        progress = data.get("progress") or {}
        has_body = any(name in data for name in ("json", "body", "body_base64"))
        return cls(
            state=data["state"],
            ended=data["ended"],
            value=bodies.to_value(data) if has_body else None,
            attempt=data.get("attempt", 0),
            error=data.get("error", ""),
            done=progress.get("done", 0),
            total=progress.get("total", 0),
            note=progress.get("note", ""),
            at=read_time(data.get("at")),
        )
