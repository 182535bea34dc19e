"""Ferry, a message queue, from Python: publish, work, results and dead letters over HTTP.

``Client`` and ``Worker`` are for ordinary programs, ``AsyncClient`` and ``AsyncWorker`` the same for asyncio. A handler ends with
a return (ack) or with an exception: ``Retry``, ``Dead``, ``Release``, ``Drop``, or any other one, which is a failed attempt.
"""

from .aio import AsyncClient
from .client import Client
from .deadletters import DeadLetter, Replay
from .delivery import Delivery, Settlement
from .errors import (
    BatchError,
    Conflict,
    FailedError,
    FerryError,
    Full,
    Invalid,
    LeaseElsewhere,
    LeaseLost,
    NotApplied,
    NotFound,
    Refused,
    TooLarge,
    Unknown,
    Unsupported,
)
from .message import Message, Receipt, RetryPolicy
from .outcomes import Dead, Drop, Outcome, Release, Retry
from .results import Result
from .worker import AsyncWorker, Worker

__all__ = [
    "AsyncClient",
    "AsyncWorker",
    "BatchError",
    "Client",
    "Conflict",
    "Dead",
    "DeadLetter",
    "Delivery",
    "Drop",
    "FailedError",
    "FerryError",
    "Full",
    "Invalid",
    "LeaseElsewhere",
    "LeaseLost",
    "Message",
    "NotApplied",
    "NotFound",
    "Outcome",
    "Receipt",
    "Refused",
    "Release",
    "Replay",
    "Result",
    "Retry",
    "RetryPolicy",
    "Settlement",
    "TooLarge",
    "Unknown",
    "Unsupported",
    "Worker",
]
