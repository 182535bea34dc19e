"""Workers: outcomes, order, leases, and the end of one."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import unittest
from contextlib import contextmanager
from typing import Any, Callable, Iterator, List, Optional, Sequence

from ferrymq import (
    AsyncClient,
    AsyncWorker,
    Client,
    Dead,
    Delivery,
    Drop,
    FerryError,
    Message,
    Refused,
    Release,
    Retry,
    RetryPolicy,
    Settlement,
    Worker,
)

from .support import Way, eventually, topic

logging.getLogger("ferrymq").setLevel(logging.CRITICAL)


@contextmanager
def working(client: Client, name: str, handler: Callable[[Delivery], Any], **options: Any) -> Iterator[Worker]:
    """A worker that runs meanwhile."""
    worker = Worker(client, name, handler, **{"poll": 0.1, **options})
    thread = threading.Thread(target=worker.run)
    thread.start()
    try:
        yield worker
    finally:
        worker.stop()
        thread.join()


@contextmanager
def finally_set(event: threading.Event) -> Iterator[None]:
    """Let the handlers that wait for it end, whatever happens."""
    try:
        yield
    finally:
        event.set()


def watch_settlements(client: Client) -> List[int]:
    """The list of what is sent to be settled from now on: which delivery of its message it is."""
    sent: List[int] = []
    settle = client.use().settle

    async def watched(settlements: Sequence[Settlement]) -> List[Optional[FerryError]]:
        sent.extend(settlement.delivery.deliveries for settlement in settlements)
        return await settle(settlements)

    client.use().settle = watched  # type: ignore[method-assign]
    return sent


class WorkerTest(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client()
        self.addCleanup(self.client.close)
        self.topic = topic()
        self.client.receive(self.topic, wait=0)  # the group is there before the first message

    def test_results(self) -> None:
        def handle(m: Delivery) -> Any:
            if m.value == "bytes":
                return Message(b"\xff", content_type="image/png")
            if m.attempt == 1 and m.value == "no form":
                return object()
            if m.attempt == 1 and m.value == "too large":
                return "x" * (64 << 10)
            return {"got": m.value}

        retry = RetryPolicy(delays=[0.05])
        ids = {v: self.client.publish(self.topic, v, retry=retry).id for v in ("json", "bytes", "no form", "too large")}
        with working(self.client, self.topic, handle, results=True):
            got = {v: self.client.wait(self.topic, id, timeout=60) for v, id in ids.items()}
        self.assertEqual((got["json"].value, got["bytes"].value), ({"got": "json"}, b"\xff"))
        self.assertEqual([(got[v].value, got[v].attempt) for v in ("no form", "too large")], [({"got": "no form"}, 2), ({"got": "too large"}, 2)])

    def test_a_follow_up_without_a_form_is_a_failed_attempt(self) -> None:
        seen: List[int] = []

        def handle(m: Delivery) -> None:
            seen.append(m.attempt)
            if m.attempt == 1:
                m.emit("elsewhere", object())

        self.client.publish(self.topic, "x", retry=RetryPolicy(delays=[0.05]))
        with working(self.client, self.topic, handle):
            eventually(lambda: seen == [1, 2], "a second attempt")

    def test_outcomes(self) -> None:
        seen: List[Any] = []

        def handle(m: Delivery) -> None:
            seen.append((m.value, m.attempt))
            first = sum(1 for value, _ in seen if value == m.value) == 1
            if m.value == "dead":
                raise Dead("card_declined", "no money")
            if m.value == "drop":
                raise Drop()
            if first and m.value == "retry":
                raise Retry(after=0.05)
            if first and m.value == "release":
                raise Release()
            if first and m.value == "error":
                raise KeyError("lost")
            if m.value == "hopeless":
                raise ValueError("never")

        policy = RetryPolicy(delays=[0.05])
        for value in ("ack", "retry", "release", "drop", "dead", "error"):
            self.client.publish(self.topic, value, retry=policy)
        self.client.publish(self.topic, "hopeless", retry=policy, max_attempts=2)
        with working(self.client, self.topic, handle):
            eventually(lambda: len(list(self.client.dead_letters(self.topic))) == 2 and len(seen) >= 11, "two dead letters")
        want = [("ack", 1), ("dead", 1), ("drop", 1), ("error", 1), ("error", 2), ("hopeless", 1), ("hopeless", 2)]
        want += [("release", 1), ("release", 1), ("retry", 1), ("retry", 2)]
        self.assertEqual(sorted(seen), want)
        reasons = {letter.value: (letter.reason, letter.error) for letter in self.client.dead_letters(self.topic)}
        self.assertEqual(reasons, {"dead": ("card_declined", "no money"), "hopeless": ("max_attempts", "ValueError: never")})

    def test_whatever_a_handler_raises_is_a_failed_attempt(self) -> None:
        class Silent(Exception):
            def __str__(self) -> str:
                raise RuntimeError("it has no text")

        raised = [Silent(), ValueError("a name of a file: \udcff"), SystemExit(1), KeyboardInterrupt(), Dead("odd", "\ud800")]
        for i in range(len(raised)):
            self.client.publish(self.topic, i, max_attempts=1)

        def handle(delivery: Delivery) -> None:
            raise raised[delivery.value]

        with working(self.client, self.topic, handle):
            eventually(lambda: len(list(self.client.dead_letters(self.topic))) == len(raised), "a dead letter for each")

    def test_follow_ups_are_published_only_if_the_handler_succeeds(self) -> None:
        mails = topic()
        self.client.receive(mails, wait=0)

        def handle(m: Delivery) -> None:
            m.emit(mails, {"attempt": m.attempt}, key="ann")
            if m.attempt == 1:
                raise Retry(after=0)

        self.client.publish(self.topic, "x")
        with working(self.client, self.topic, handle):
            (mail,) = self.client.receive(mails, wait=20)
        self.assertEqual((mail.value, mail.key), ({"attempt": 2}, "ann"))
        self.assertEqual(self.client.receive(mails, wait=0), [])

    def test_a_follow_up_that_is_refused_fails_the_attempt(self) -> None:
        def handle(m: Delivery) -> None:
            m.emit("no topic", 1)

        self.client.publish(self.topic, "x", max_attempts=1)
        with working(self.client, self.topic, handle):
            eventually(lambda: len(list(self.client.dead_letters(self.topic))) == 1, "a dead letter")
        (letter,) = self.client.dead_letters(self.topic)
        self.assertIn("what it emits or returns is refused", letter.error)

    def test_messages_of_one_key_are_handled_in_order_one_at_a_time(self) -> None:
        lock, running, overlaps, done = threading.Lock(), set(), [], {}

        def handle(m: Delivery) -> None:
            with lock:
                if m.key in running:
                    overlaps.append(m.key)
                running.add(m.key)
            if m.value % 7 == 3 and m.attempt == 1:
                with lock:
                    running.discard(m.key)
                raise Retry(after=0)
            with lock:
                running.discard(m.key)
                done.setdefault(m.key, []).append(m.value)

        self.client.publish_many(self.topic, [Message(n, key=f"k{n % 5}") for n in range(100)])
        with working(self.client, self.topic, handle, concurrency=8):
            eventually(lambda: sum(map(len, done.values())) == 100, "all are handled")
        self.assertEqual(overlaps, [])
        self.assertEqual(done, {f"k{k}": list(range(k, 100, 5)) for k in range(5)})

    def test_no_more_is_held_than_concurrency_and_prefetch(self) -> None:
        go = threading.Event()
        started = []
        self.client.publish_many(self.topic, range(20))
        with working(self.client, self.topic, lambda m: (started.append(m.id), go.wait()), concurrency=2, prefetch=3):
            with finally_set(go):
                eventually(lambda: len(started) == 2, "two handlers run")
                others = self.client.receive(self.topic, max=100, wait=1)
                self.assertGreaterEqual(len(others), 15)
                self.assertEqual(len(started), 2)

    def test_leases_are_renewed_as_long_as_a_handler_runs(self) -> None:
        seen: List[int] = []
        self.client.publish(self.topic, "long")
        with working(self.client, self.topic, lambda m: (time.sleep(8), seen.append(m.deliveries)), lease=5):
            eventually(lambda: len(seen) == 1, "it is handled")
        self.assertEqual(seen, [1])
        self.assertEqual(self.client.receive(self.topic, wait=0), [])

    def test_a_lost_lease_cancels_and_is_never_settled(self) -> None:
        """The worker is cut off until its lease is over. Its message comes again, after the first handler has ended."""
        way = Way(os.environ["FERRY_BROKER"])
        self.addCleanup(way.close)
        events: List[str] = []

        def handle(m: Delivery) -> None:
            events.append(f"start {m.deliveries}")
            if m.deliveries == 1:
                way.cut()
                m.cancelled.wait()
                events.append("cancelled")
                way.mend()
                time.sleep(1.5)  # so that the second delivery is here before the first handler has ended
            events.append(f"end {m.deliveries}")

        self.client.publish(self.topic, "x", key="ann")
        with Client(way.url, timeout=2) as client:
            settled = watch_settlements(client)
            with working(client, self.topic, handle, lease=3):
                eventually(lambda: "end 2" in events, "it is handled again")
        self.assertEqual(events, ["start 1", "cancelled", "end 1", "start 2", "end 2"])
        self.assertEqual(settled, [2])

    def test_an_async_handler_that_calls_the_client_of_its_loop_is_told(self) -> None:
        async def handle(_: Delivery) -> None:
            self.client.publish(self.topic, "would wait for ever")

        self.client.publish(self.topic, "x", max_attempts=1)
        with working(self.client, self.topic, handle):
            eventually(lambda: len(list(self.client.dead_letters(self.topic))) == 1, "a dead letter")
        (letter,) = self.client.dead_letters(self.topic)
        self.assertIn("use an AsyncClient", letter.error)

    def test_a_worker_that_may_not_consume_ends_with_an_error(self) -> None:
        with Client(token="wrong") as client:
            self.assertRaises(Refused, Worker(client, self.topic, print).run)

    def test_a_stop_gives_back_what_has_not_started(self) -> None:
        go, started = threading.Event(), []
        self.client.publish_many(self.topic, range(6))
        with working(self.client, self.topic, lambda m: (started.append(m.value), go.wait()), concurrency=2, lease=30) as worker:
            with finally_set(go):
                eventually(lambda: len(started) == 2, "two handlers run")
                worker.stop()
                others = []
                eventually(lambda: others.extend(self.client.receive(self.topic, wait=0.2)) or len(others) == 4, "the rest is back")
        self.assertEqual([other.deliveries for other in others], [1, 1, 1, 1])
        self.assertEqual(sorted(started + [other.value for other in others]), list(range(6)))


class AsyncWorkerTest(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self) -> None:
        self.client = AsyncClient()
        self.topic = topic()
        await self.client.receive(self.topic, wait=0)

    async def asyncTearDown(self) -> None:
        await self.client.close()

    async def test_handlers_run_side_by_side(self) -> None:
        everybody, seen = asyncio.Event(), []

        async def handle(m: Delivery) -> None:
            seen.append(m.value)
            if len(seen) == 50:
                everybody.set()
            await everybody.wait()

        worker = AsyncWorker(self.client, self.topic, handle, concurrency=50, poll=0.1)
        await self.client.publish_many(self.topic, range(50))
        run = asyncio.ensure_future(worker.run(signals=False))
        await asyncio.wait_for(everybody.wait(), 60)
        worker.stop()
        await run
        self.assertEqual(await self.client.receive(self.topic, wait=0), [])

    async def test_a_lost_lease_cancels_the_handler(self) -> None:
        way = Way(os.environ["FERRY_BROKER"])
        self.addCleanup(way.close)
        events: List[str] = []
        ended = asyncio.Event()

        async def handle(m: Delivery) -> None:
            events.append(f"start {m.deliveries}")
            if m.deliveries > 1:
                ended.set()
                return
            try:
                way.cut()
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                events.append("cancelled")
                way.mend()
                raise

        await self.client.publish(self.topic, "x")
        async with AsyncClient(way.url, timeout=2) as client:
            worker = AsyncWorker(client, self.topic, handle, lease=3, poll=0.1)
            run = asyncio.ensure_future(worker.run(signals=False))
            await asyncio.wait_for(ended.wait(), 60)
            worker.stop()
            await run
        self.assertEqual(events, ["start 1", "cancelled", "start 2"])

    async def test_after_the_drain_handlers_are_cancelled_and_their_messages_given_back(self) -> None:
        started = asyncio.Event()

        async def handle(_: Delivery) -> None:
            started.set()
            await asyncio.sleep(60)

        await self.client.publish(self.topic, "x")
        worker = AsyncWorker(self.client, self.topic, handle, poll=0.1, drain=0.1, lease=30)
        run = asyncio.ensure_future(worker.run(signals=False))
        await asyncio.wait_for(started.wait(), 60)
        worker.stop()
        await run
        (again,) = await self.client.receive(self.topic, wait=20)
        self.assertEqual((again.attempt, again.deliveries), (1, 1))
