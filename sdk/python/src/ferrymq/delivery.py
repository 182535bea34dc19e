"""Deliveries: messages that are ours for the time of a lease, and how they end."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple

from . import bodies
from .durations import Duration, from_text, to_text
from .message import Message, to_line, to_message

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .message import Options

Follow = Tuple[str, Message]


@dataclass
class Delivery:
    """One message, received. It is ours until it is settled, or its lease is over."""

    id: str
    topic: str
    group: str
    key: str
    #: The body: what JSON says if it is JSON, otherwise bytes.
    value: Any
    content_type: str
    headers: Mapping[str, str]
    #: The first attempt is 1.
    attempt: int
    #: How often it was handed out and not settled, this time included.
    deliveries: int
    cause: str
    published_at: Optional[datetime]
    #: The handle that settles and extends it.
    lease: str
    #: For how many seconds it was ours when it was handed out.
    lease_for: float
    #: Set when the lease is lost, or the worker cannot wait any longer: what is done from now on does not count, and the message
    #: comes again. A handler in a thread looks at it; one in asyncio is cancelled.
    cancelled: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)
    #: Follow-ups, by topic, that are published with the acknowledgement.
    emitted: List[Follow] = field(default_factory=list, repr=False, compare=False)

    #: What the server wrote of its body.
    encoded: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def body(self) -> bytes:
        """The body as bytes. JSON is written anew: spaces and the order of keys may differ from what was published."""
        return bodies.to_bytes(self.encoded)

    def emit(self, topic: str, value: Any, **options: "Unpack[Options]") -> None:
        """Publish a follow-up no later than this message is acknowledged, and not at all if its handler fails."""
        message = to_message(value, options)
        to_line(message.to_json(topic))  # what has no form in JSON fails the handler, and not the worker
        self.emitted.append((topic, message))

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Delivery":
        """The delivery that the server wrote."""
        return cls(
            id=data["id"],
            topic=data["topic"],
            group=data["group"],
            key=data.get("key", ""),
            value=bodies.to_value(data),
            content_type=data.get("content_type", ""),
            headers=data.get("headers") or {},
            attempt=data["attempt"],
            deliveries=data["deliveries"],
            cause=data.get("cause", ""),
            published_at=read_time(data.get("published_at")),
            lease=data["lease"],
            lease_for=from_text(data["lease_for"]),
            encoded=data,
        )


def read_time(text: Optional[str]) -> Optional[datetime]:
    """A time that the server wrote."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


@dataclass
class Settlement:
    """How a delivery ends. ``outcome`` is ack, retry, dead, release or drop."""

    delivery: Delivery
    outcome: str = "ack"
    after: Optional[Duration] = None
    reason: str = ""
    error: str = ""
    emit: Sequence[Follow] = ()
    #: What the handler returned, for who waits for it. Goes with an ack.
    result: Optional[Message] = None

    def to_json(self) -> Dict[str, Any]:
        """The settlement as the server reads it."""
        out: Dict[str, Any] = {"lease": self.delivery.lease, "outcome": self.outcome}
        if self.after is not None:
            out["after"] = to_text(self.after)
        if self.reason:
            out["reason"] = _valid(self.reason)
        if self.error:
            out["error"] = _valid(self.error)
        if self.emit:
            out["emit"] = [message.to_json(topic) for topic, message in self.emit]
        if self.result is not None:
            out["result"] = self.result.body()
        return out


def _valid(text: str) -> str:
    """The text as UTF-8 has it: half a character, as names of files can have, would keep the settlement from being sent."""
    return text.encode("utf-8", "replace").decode()
