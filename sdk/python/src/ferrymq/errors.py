"""What can go wrong. Every error has a stable code, and a hint what to do next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Type

if TYPE_CHECKING:
    from .message import Receipt
    from .results import Result


class FerryError(Exception):
    """What the server refused, or what became of a request that had no answer.

    ``code`` never changes its meaning, ``hint`` is for people, and the server's log knows ``request_id``.
    """

    #: Whether the same request may succeed later.
    transient = False
    #: The code of errors that are made here, and not by a server.
    default_code = "internal"

    def __init__(self, detail: str, *, code: str = "", hint: str = "", status: int = 0, request_id: str = "") -> None:
        super().__init__(detail)
        self.detail = detail
        self.code = code or self.default_code
        self.hint = hint
        self.status = status
        self.request_id = request_id

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}" + (f" ({self.hint})" if self.hint else "")


class Invalid(FerryError):
    """Nothing was done, and so it will be the next time."""

    default_code = "invalid"


class Refused(FerryError):
    """The token is wrong, or has not the scope on the topic."""

    default_code = "refused"


class NotFound(FerryError):
    """There is no such thing."""

    default_code = "not_found"


class Conflict(FerryError):
    """What exists differs."""

    default_code = "conflict"


class LeaseLost(FerryError):
    """The delivery is not held any more; the message comes again."""

    default_code = "lease_lost"


class LeaseElsewhere(FerryError):
    """Another gateway holds the lease. The next try may reach that one."""

    transient = True
    default_code = "lease_elsewhere"


class TooLarge(FerryError):
    """The message or the request exceeds a limit."""

    default_code = "too_large"


class Full(FerryError):
    """A bound was reached, nothing was stored; later there may be room."""

    transient = True
    default_code = "full"


class Unsupported(FerryError):
    """This broker cannot do it."""

    default_code = "unsupported"


class NotApplied(FerryError):
    """The server was not reached, or changed nothing."""

    transient = True
    default_code = "not_applied"


class Unknown(FerryError):
    """The answer was lost: it may have been done, or not. Repeating it under the same id is safe."""

    transient = True
    default_code = "unknown"


class FailedError(FerryError):
    """A message for whose result somebody waits became a dead letter, or was cancelled. ``result`` says why."""

    default_code = "failed"

    def __init__(self, result: "Result") -> None:
        super().__init__(f"the message is {result.state}: {result.error}", hint="see its dead letter")
        self.result = result


class BatchError(FerryError):
    """Some messages of a batch were not stored. ``receipts`` has one answer for each message, in order."""

    default_code = "batch"

    def __init__(self, receipts: List["Receipt"]) -> None:
        failed = [receipt.error for receipt in receipts if receipt.error is not None]
        detail = f"{len(failed)} of {len(receipts)} messages were not stored, the first because: {failed[0]}"
        super().__init__(detail, hint="look at the error of each receipt")
        self.receipts = receipts


_BY_CODE: Dict[str, Type[FerryError]] = {
    "invalid": Invalid,
    "invalid_request": Invalid,
    "refused": Refused,
    "forbidden": Refused,
    "unauthenticated": Refused,
    "not_found": NotFound,
    "conflict": Conflict,
    "lease_lost": LeaseLost,
    "lease_elsewhere": LeaseElsewhere,
    "too_large": TooLarge,
    "full": Full,
    "too_many_requests": Full,
    "unsupported": Unsupported,
    "not_applied": NotApplied,
    "unavailable": NotApplied,
    "unknown": Unknown,
    "internal": Unknown,
}


def from_problem(problem: Mapping[str, Any]) -> FerryError:
    """The error of a problem (RFC 9457) that the server wrote."""
    code = str(problem.get("code", "internal"))
    return _BY_CODE.get(code, FerryError)(
        str(problem.get("detail") or problem.get("title") or "the server gave no reason"),
        code=code,
        hint=str(problem.get("hint", "")),
        status=int(problem.get("status", 0)),
        request_id=str(problem.get("request_id", "")),
    )


def from_answer(status: int, body: bytes) -> FerryError:
    """The error of an answer. One that is no problem was made by a proxy on the way."""
    try:
        problem = json.loads(body)
    except ValueError:
        problem = None
    if isinstance(problem, dict) and "code" in problem:
        return from_problem({"status": status, **problem})
    kind = Unknown if status in (408, 500, 502, 503, 504) else FerryError
    return kind(f"the answer has status {status} and is not Ferry's", hint="is the URL that of a Ferry server?", status=status)
