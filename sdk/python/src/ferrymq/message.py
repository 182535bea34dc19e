"""Messages as they are published, and what the server says of them."""

from __future__ import annotations

import base64
import json
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Dict, Mapping, Optional, Sequence, TypedDict

from .durations import Duration, from_text, to_text
from .errors import FerryError, from_problem

if TYPE_CHECKING:
    from typing import Literal

    Priority = Literal["low", "normal", "high", "urgent"]


@dataclass(frozen=True)
class RetryPolicy:
    """When failed attempts are repeated: after ``delays``, or after ``base`` times ``factor`` each time, up to ``cap``."""

    base: Optional[Duration] = None
    factor: Optional[float] = None
    cap: Optional[Duration] = None
    delays: Sequence[Duration] = ()
    jitter: bool = True
    max_elapsed: Optional[Duration] = None

    def to_json(self) -> Dict[str, Any]:
        """The policy as the server reads it."""
        out: Dict[str, Any] = {"factor": self.factor, "no_jitter": not self.jitter, "delays": [to_text(d) for d in self.delays]}
        for name in ("base", "cap", "max_elapsed"):
            value = getattr(self, name)
            out[name] = None if value is None else to_text(value)
        return {name: value for name, value in out.items() if value}


class Options(TypedDict, total=False):
    """What may be said of a message besides its value. The fields of ``Message`` explain them."""

    id: str
    key: str
    content_type: str
    headers: Mapping[str, str]
    priority: "Priority"
    delay: Duration
    at: datetime
    ttl: Duration
    dedup_id: str
    dedup_window: Duration
    max_attempts: int
    retry: RetryPolicy


@dataclass
class Message:
    """A message to publish.

    ``value`` is the body: bytes as they are, a str with a ``content_type`` as text, and everything else as JSON.
    """

    value: Any
    #: Its id. Defaults to a random one, so that a request that is repeated stores the message once.
    id: str = ""
    #: Messages of one key are handled one after the other, in the order of their publishing.
    key: str = ""
    #: Defaults to application/json, or application/octet-stream for bytes.
    content_type: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    #: Defaults to normal.
    priority: "Optional[Priority]" = None
    #: It is not delivered before this time has passed.
    delay: Optional[Duration] = None
    #: It is not delivered before this time, which needs a time zone.
    at: Optional[datetime] = None
    #: A message that is older is not handled any more, and becomes a dead letter.
    ttl: Optional[Duration] = None
    #: Messages with the same one are stored once within ``dedup_window``.
    dedup_id: str = ""
    dedup_window: Optional[Duration] = None
    #: After so many failed attempts it is dead. Defaults to 10.
    max_attempts: int = 0
    #: When failed attempts are repeated. Defaults to 1 s and longer each time, up to 10 minutes.
    retry: Optional[RetryPolicy] = None

    def to_json(self, topic: str = "") -> Dict[str, Any]:
        """The message as the server reads it. The topic is that of a follow-up."""
        out: Dict[str, Any] = {"id": self.id, "topic": topic, "key": self.key, "dedup_id": self.dedup_id}
        out.update(headers=dict(self.headers), priority=self.priority, max_attempts=self.max_attempts)
        for name, duration in (("delay", self.delay), ("ttl", self.ttl), ("dedup_window", self.dedup_window)):
            out[name] = None if duration is None else to_text(duration)
        out["at"] = None if self.at is None else _time(self.at)
        out["retry"] = None if self.retry is None else self.retry.to_json()
        out = {name: value for name, value in out.items() if value}
        out.update(self.body())
        return out

    def body(self) -> Dict[str, Any]:
        """The body alone as the server reads it."""
        if isinstance(self.value, (bytes, bytearray, memoryview)):
            kind = self.content_type or "application/octet-stream"
            return {"body_base64": base64.b64encode(self.value).decode(), "content_type": kind}
        if isinstance(self.value, str) and self.content_type:
            return {"body": self.value, "content_type": self.content_type}
        return {"json": self.value, "content_type": self.content_type or "application/json"}


def _time(at: datetime) -> str:
    if at.tzinfo is None:
        raise ValueError("a time without a zone is ambiguous: use datetime.now(timezone.utc), for example")
    return at.astimezone(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def with_id(message: Message) -> Message:
    """The message, with an id: whatever is repeated has the same one."""
    if not message.id:
        message.id = uuid.uuid4().hex
    return message


def to_message(value: Any, options: "Optional[Options]" = None) -> Message:
    """The message of a value. A Message is copied, so that the caller's own stays without an id."""
    if not isinstance(value, Message):
        return Message(value, **(options or {}))
    if options:
        raise TypeError("a Message says all of itself: put " + ", ".join(options) + " into it")
    return Message(**value.__dict__)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def to_line(value: Any) -> bytes:
    """One value as one line of JSON. What JSON has no form for is refused here, before anything is sent."""
    return _ENCODER.encode(value).encode()


@dataclass(frozen=True)
class Receipt:
    """What became of a message that was published."""

    id: str = ""
    #: The id, or the dedup_id, was there before: nothing was stored again.
    duplicate: bool = False
    #: For how many seconds the same id is stored once.
    id_window: float = 0.0
    #: Why it was not stored.
    error: Optional[FerryError] = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Receipt":
        """The receipt that the server wrote."""
        if data.get("error"):
            return cls(id=str(data.get("id", "")), error=from_problem(data["error"]))
        return cls(id=str(data["id"]), duplicate=bool(data.get("duplicate")), id_window=from_text(str(data.get("id_window", "0"))))
