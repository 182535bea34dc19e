"""What a worker holds, and the renewal of its leases."""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import dataclass, field
from typing import Callable, Optional, Sequence, Set

from .aio import AsyncClient
from .delivery import Delivery
from .errors import FerryError, LeaseLost

#: The most leases of one request.
_MOST = 1000


@dataclass(eq=False)
class Held:
    """A delivery that the worker holds, from its receipt until it is settled or lost."""

    delivery: Delivery
    #: How long one lease is, in seconds.
    lease: float = field(init=False)
    #: By the clock of this process, when the lease is over if nothing renews it.
    until: float = field(init=False)
    lost: bool = False
    #: Its settlement is on the way: whether the lease was lost is known from the answer to that, and from nothing that crosses it.
    settling: bool = False
    #: The handler, if it is one that can be cancelled.
    task: "Optional[asyncio.Task[None]]" = None

    def __post_init__(self) -> None:
        self.lease = max(0.1, self.delivery.lease_for)
        self.until = time.monotonic() + self.lease

    def is_due(self, now: float) -> bool:
        """Whether a third of the lease has passed."""
        return self.until - now <= self.lease * 2 / 3

    def cancel(self) -> None:
        """Tell the handler that its work does not count any more."""
        self.delivery.cancelled.set()
        if self.task is not None:
            self.task.cancel()


class Leases:
    """Everything the worker holds. Renewed at a third of the lease; lost when the server says so, or when its time is over."""

    def __init__(self, client: AsyncClient, log: logging.Logger, on_gone: Callable[[], None]) -> None:
        self._client = client
        self._log = log
        self._on_gone = on_gone
        self._held: Set[Held] = set()
        self._some = asyncio.Event()
        self._tick = 1.0

    def __len__(self) -> int:
        return len(self._held)

    def add(self, delivery: Delivery) -> Held:
        """Hold a delivery."""
        held = Held(delivery)
        self._tick = min(self._tick, held.lease / 10)
        self._held.add(held)
        self._some.set()
        return held

    def drop(self, held: Held) -> None:
        """Hold it no longer: it is settled, lost, or given up."""
        self._held.discard(held)
        if not self._held:
            self._some.clear()
        self._on_gone()

    def lose(self, held: Held, why: str) -> None:
        """The message is somebody else's now, or will be."""
        if held.lost or held not in self._held:
            return
        held.lost = True
        self._log.warning("ferry: the lease of %s/%s is lost: %s; it comes again", held.delivery.topic, held.delivery.id, why)
        self.drop(held)
        held.cancel()

    async def run(self) -> None:
        """Renew until cancelled. A renewal that hangs does not hide that leases end meanwhile."""
        renewal: "Optional[asyncio.Task[None]]" = None
        try:
            while True:
                await self._some.wait()
                await asyncio.sleep(self._tick)
                self._expire()
                if renewal is None or renewal.done():
                    renewal = asyncio.ensure_future(self._renew())
        finally:
            if renewal is not None:
                renewal.cancel()

    def _expire(self) -> None:
        now = time.monotonic()
        for held in [held for held in self._held if held.until <= now]:
            self.lose(held, "it could not be renewed in time")

    async def _renew(self) -> None:
        now = time.monotonic()
        due = [held for held in self._held if held.is_due(now)]
        for at in range(0, len(due), _MOST):
            await self._renew_some(due[at : at + _MOST])

    async def _renew_some(self, some: Sequence[Held]) -> None:
        start = time.monotonic()
        try:
            errors = await self._client.extend([held.delivery for held in some], timeout=max(1.0, some[0].lease / 3))
        except FerryError as error:
            self._log.warning("ferry: %d leases were not renewed, which is tried again: %s", len(some), error)
            return
        for held, failure in zip(some, errors):
            if failure is None:
                held.until = start + held.lease
            elif isinstance(failure, LeaseLost) and not held.settling:
                self.lose(held, failure.detail)
