"""Settlements on their way: in batches, repeated until the server has answered, never after a lost lease."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Deque, List, Optional, Sequence, Tuple

from .aio import AsyncClient
from .backoff import Backoff
from .delivery import Settlement
from .errors import FerryError, Invalid, LeaseLost, TooLarge
from .leases import Held, Leases

#: The most settlements of one request.
_MOST = 1000

Pending = Tuple[Held, Settlement]


class Settler:
    """Sends what handlers decided. What gathers while a request is under way is the next one."""

    def __init__(self, client: AsyncClient, leases: Leases, log: logging.Logger) -> None:
        self._client = client
        self._leases = leases
        self._log = log
        self._pending: Deque[Pending] = deque()
        self._wake = asyncio.Event()
        self._backoff = Backoff()

    def add(self, held: Held, settlement: Settlement) -> None:
        """Settle a delivery."""
        self._pending.append((held, settlement))
        self._wake.set()

    async def run(self) -> None:
        """Settle until cancelled."""
        while True:
            await self._wake.wait()
            batch = self._take()
            if batch and not await self._settle(batch):
                await asyncio.sleep(self._backoff.pause())

    def _take(self) -> List[Pending]:
        """The next batch, without what was lost: its message is somebody else's."""
        batch: List[Pending] = []
        while self._pending and len(batch) < _MOST:
            held, settlement = self._pending.popleft()
            if not held.lost:
                batch.append((held, settlement))
        if not self._pending:
            self._wake.clear()
        return batch

    async def _settle(self, batch: Sequence[Pending]) -> bool:
        """Settle a batch. Reports whether the server answered for all of it."""
        for held, _ in batch:
            held.settling = True
        try:
            errors = await self._client.settle([settlement for _, settlement in batch])
        except (Invalid, TooLarge) as error:
            return await self._settle_apart(batch, error)
        except FerryError as error:
            self._log.warning("ferry: %d settlements had no answer, and are repeated: %s", len(batch), error)
            self._repeat(batch)
            return False
        again = [pending for pending, error in zip(batch, errors) if not self._settled(pending, error)]
        self._repeat(again)
        if not again:
            self._backoff.reset()
        return not again

    async def _settle_apart(self, batch: Sequence[Pending], error: FerryError) -> bool:
        """One settlement spoils the request, by the size of what it emits for example: find out which."""
        if len(batch) == 1:
            return self._settled(batch[0], error)
        answered = [await self._settle([pending]) for pending in batch]
        return all(answered)

    def _settled(self, pending: Pending, error: Optional[FerryError]) -> bool:
        """Take the answer about one settlement. Reports whether it is the last one."""
        held, settlement = pending
        if error is None:
            self._leases.drop(held)
        elif isinstance(error, LeaseLost):
            self._leases.lose(held, error.detail)
        elif error.transient:
            return False
        elif settlement.emit or settlement.result is not None:
            self._log.error("ferry: %s emits or returns what is refused, and is retried: %s", held.delivery.id, error)
            self.add(held, Settlement(settlement.delivery, "retry", error=f"what it emits or returns is refused: {error}"))
        else:
            self._log.error("ferry: %s cannot be settled, and comes again: %s", held.delivery.id, error)
            self._leases.drop(held)
        return True

    def _repeat(self, batch: Sequence[Pending]) -> None:
        for held, _ in batch:
            held.settling = False
        self._pending.extendleft(reversed(batch))
        if batch:
            self._wake.set()
