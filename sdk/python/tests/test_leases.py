"""What renewals say, and what they cannot know."""

from __future__ import annotations

import asyncio
import logging
import unittest
from typing import Any, List, Optional, Sequence

from ferrymq import FerryError, LeaseLost
from ferrymq.delivery import Delivery
from ferrymq.leases import Leases

logging.getLogger("ferrymq").setLevel(logging.CRITICAL)


class Forgetful:
    """A server that holds nothing any more."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()

    async def extend(self, deliveries: Sequence[Delivery], **_: Any) -> List[Optional[FerryError]]:
        self.asked.set()
        return [LeaseLost("it is not held") for _ in deliveries]


class LeasesTest(unittest.IsolatedAsyncioTestCase):
    async def test_a_renewal_that_crosses_a_settlement_says_nothing_of_its_lease(self) -> None:
        server = Forgetful()
        leases = Leases(server, logging.getLogger("ferrymq"), lambda: None)  # type: ignore[arg-type]
        data = {"id": "1", "topic": "t", "group": "g", "attempt": 1, "deliveries": 1, "lease": "1", "lease_for": "30s"}
        settling, running = leases.add(Delivery.from_json(data)), leases.add(Delivery.from_json(data))
        settling.settling = True
        for held in (settling, running):
            held.until -= 15  # half of it is over: it is due
        leases._tick = 0.01
        run = asyncio.ensure_future(leases.run())
        await asyncio.wait_for(server.asked.wait(), 30)
        while not running.lost:
            await asyncio.sleep(0.01)
        run.cancel()
        self.assertEqual((settling.lost, settling.delivery.cancelled.is_set()), (False, False))
        self.assertTrue(running.delivery.cancelled.is_set())
