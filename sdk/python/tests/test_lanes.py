"""Which delivery starts next."""

from __future__ import annotations

import unittest

from ferrymq.delivery import Delivery
from ferrymq.lanes import Lanes
from ferrymq.leases import Held


def held(id: str, key: str) -> Held:
    data = {"id": id, "topic": "t", "group": "g", "key": key, "attempt": 1, "deliveries": 1, "lease": id, "lease_for": "10s"}
    return Held(Delivery.from_json(data))


class LanesTest(unittest.TestCase):
    def test_a_key_waits_for_its_handler_and_no_other(self) -> None:
        lanes = Lanes()
        first, second, third, other, free = held("1", "k"), held("2", "k"), held("3", "k"), held("4", "o"), held("5", "")
        for one in (first, second, third, other, free):
            lanes.add(one)
        self.assertEqual([lanes.next(), lanes.next(), lanes.next(), lanes.next()], [first, other, free, None])
        lanes.done(first)
        self.assertEqual([lanes.next(), lanes.next()], [second, None])
        self.assertEqual(lanes.clear(), [third])
        lanes.done(second)
        self.assertIsNone(lanes.next())

    def test_what_is_lost_does_not_start(self) -> None:
        lanes = Lanes()
        lost, good = held("1", "k"), held("2", "k")
        lanes.add(lost)
        lanes.add(good)
        lost.lost = True
        self.assertEqual([lanes.next(), lanes.next()], [good, None])
