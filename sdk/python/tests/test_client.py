"""Publishing, receiving without a worker, results and dead letters."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import unittest
from datetime import datetime, timedelta, timezone

from ferrymq import (
    BatchError,
    Client,
    FailedError,
    Invalid,
    Message,
    NotApplied,
    Refused,
    RetryPolicy,
    Settlement,
)

from .support import Way, topic


class ClientTest(unittest.TestCase):
    def setUp(self) -> None:
        self.client = Client()
        self.addCleanup(self.client.close)
        self.topic = topic()
        self.assertEqual(self.client.receive(self.topic, wait=0), [])  # the group is there before the first message

    def receive_one(self):  # type: ignore[no-untyped-def]
        (delivery,) = self.client.receive(self.topic, max=1, wait=20)
        self.assertEqual(self.client.settle([Settlement(delivery)]), [None])
        return delivery

    def test_bodies(self) -> None:
        for value, content_type, want in (
            ({"名字": "摆渡", "n": 2**53 + 1}, "", {"名字": "摆渡", "n": 2**53 + 1}),
            (None, "", None),
            ("text", "", "text"),
            ("文本", "text/plain", "文本".encode()),
            (b"\x00\xff", "", b"\x00\xff"),
            (b"", "image/png", b""),
            ([], "", []),
        ):
            with self.subTest(value=value):
                self.client.publish(self.topic, value, content_type=content_type)
                self.assertEqual(self.receive_one().value, want)

    def test_everything_that_can_be_said_of_a_message(self) -> None:
        sent = Message(
            {"id": 1},
            id="order-" + self.topic,
            key="ann 安",
            headers={"trace": "7f", "name": "摆渡"},
            priority="high",
            ttl=timedelta(hours=1),
            max_attempts=3,
            retry=RetryPolicy(base=1, cap=60),
        )
        receipt = self.client.publish(self.topic, sent)
        self.assertEqual((receipt.id, receipt.duplicate), (sent.id, False))
        self.assertGreater(receipt.id_window, 30)
        self.assertTrue(self.client.publish(self.topic, sent).duplicate)
        got = self.receive_one()
        self.assertEqual((got.id, got.key, dict(got.headers), got.attempt), (sent.id, sent.key, sent.headers, 1))
        self.assertEqual((got.topic, got.group, got.content_type), (self.topic, "default", "application/json"))

    def test_what_is_delayed_or_scheduled_does_not_come_early(self) -> None:
        due = {"later": time.time() + 1.5, "at": time.time() + 1}
        self.client.publish(self.topic, "later", delay=1.5)
        self.client.publish(self.topic, "at", at=datetime.fromtimestamp(due["at"], timezone.utc))
        while due:
            value = self.receive_one().value
            self.assertGreaterEqual(time.time() + 0.01, due.pop(value))

    def test_dedup(self) -> None:
        first = self.client.publish(self.topic, "now", dedup_id="cart", dedup_window=60)
        second = self.client.publish(self.topic, "now", dedup_id="cart", dedup_window=60)
        self.assertEqual((first.duplicate, second.duplicate), (False, True))
        self.assertEqual(self.receive_one().value, "now")
        self.assertEqual(self.client.receive(self.topic, wait=0), [])

    def test_a_batch_is_stored_in_order_with_one_receipt_each(self) -> None:
        receipts = self.client.publish_many(self.topic, [Message(n, key="k", id=f"{self.topic}-{n}") for n in range(2500)])
        self.assertEqual([receipt.id for receipt in receipts], [f"{self.topic}-{n}" for n in range(2500)])
        self.assertEqual([self.receive_one().value for _ in range(5)], [0, 1, 2, 3, 4])
        self.assertEqual(self.client.publish_many(self.topic, []), [])

    def test_a_batch_tells_of_each_message_that_was_not_stored(self) -> None:
        wrong = Message("wrong", priority="top")  # type: ignore[arg-type]
        with self.assertRaises(BatchError) as raised:
            self.client.publish_many(self.topic, ["a", wrong, "b"])
        errors = [receipt.error and receipt.error.code for receipt in raised.exception.receipts]
        self.assertEqual(errors, [None, "invalid", None])
        self.assertEqual({self.receive_one().value, self.receive_one().value}, {"a", "b"})

    def test_a_publish_whose_answer_is_lost_is_stored_once(self) -> None:
        way = Way(os.environ["FERRY_BROKER"])
        self.addCleanup(way.close)
        with Client(way.url) as client:
            way.losing = 1
            self.assertTrue(client.publish(self.topic, "one").duplicate)
            way.losing = 1
            self.assertTrue(all(receipt.duplicate for receipt in client.publish_many(self.topic, ["two", "three"])))
        self.assertEqual(sorted(self.receive_one().value for _ in range(3)), ["one", "three", "two"])
        self.assertEqual(self.client.receive(self.topic, wait=0), [])

    def test_a_server_that_is_away(self) -> None:
        way = Way(os.environ["FERRY_BROKER"])
        way.close()  # nobody listens there any more
        with Client(way.url, retry_for=0.2) as client:
            self.assertRaises(NotApplied, client.publish, self.topic, "x")
            with self.assertRaises(BatchError) as raised:
                client.publish_many(self.topic, range(1500))
        self.assertEqual({receipt.error.code for receipt in raised.exception.receipts if receipt.error}, {"not_applied"})
        self.assertEqual(len(raised.exception.receipts), 1500)

    def test_extend_and_settle(self) -> None:
        self.client.publish(self.topic, "x", max_attempts=2)
        (delivery,) = self.client.receive(self.topic, wait=20, lease=5)
        self.assertEqual(self.client.extend([delivery]), [None])
        self.assertEqual(self.client.settle([Settlement(delivery, "retry", after=0)]), [None])
        (lost,) = self.client.settle([Settlement(delivery)])
        self.assertEqual(lost and lost.code, "lease_lost")
        self.assertEqual(self.receive_one().attempt, 2)

    def test_results(self) -> None:
        receipt = self.client.publish("reports", {"n": 21})
        result = self.client.wait("reports", receipt.id, timeout=60)
        self.assertEqual((result.state, result.value, result.ended), ("done", 42, True))
        receipt = self.client.publish("reports", {"n": -1})
        with self.assertRaises(FailedError) as raised:
            self.client.wait("reports", receipt.id, timeout=60)
        self.assertIn("negative", raised.exception.result.error)
        later = self.client.publish(self.topic, "later", delay=60)
        self.assertEqual(self.client.result(self.topic, later.id).state, "waiting")
        self.assertRaises(TimeoutError, self.client.wait, self.topic, later.id, timeout=0.2)

    def test_dead_letters(self) -> None:
        self.client.publish_many(self.topic, [Message(n, key=str(n)) for n in range(3)])
        deliveries = [self.client.receive(self.topic, max=1, wait=20)[0] for _ in range(3)]
        self.client.settle([Settlement(delivery, "dead", reason="card_declined", error="no money") for delivery in deliveries])
        letters = list(self.client.dead_letters(self.topic))
        self.assertEqual(sorted(letter.value for letter in letters), [0, 1, 2])
        self.assertEqual((letters[0].reason, letters[0].error, letters[0].attempts), ("card_declined", "no money", 1))
        self.assertEqual(len(list(self.client.dead_letters(self.topic, where="json == 1"))), 1)
        self.assertEqual(self.client.replay(letters[0]).done, 1)
        self.assertEqual(self.receive_one().id, letters[0].id)
        self.assertEqual(self.client.replay_many(self.topic, where='reason == "card_declined"', dry_run=True, timeout=60).done, 2)
        self.assertEqual(self.client.replay_many(self.topic, timeout=60).done, 2)
        self.assertEqual(list(self.client.dead_letters(self.topic)), [])

    def test_bad_input(self) -> None:
        self.assertRaises(ValueError, self.client.publish, self.topic, float("nan"))
        self.assertRaises(TypeError, self.client.publish, self.topic, object())
        self.assertRaises(ValueError, self.client.publish, self.topic, 1, at=datetime(2030, 1, 1))
        self.assertRaises(TypeError, self.client.publish, self.topic, Message(1), key="beside")
        self.assertRaises(Invalid, self.client.publish, "no topic", 1)
        self.assertRaises(Invalid, self.client.receive, self.topic, max=5000)
        with Client(token="wrong") as stranger:
            self.assertRaises(Refused, stranger.publish, self.topic, 1)
        for url in ("localhost:7070", "redis://localhost", "http://ann:secret@localhost", "http://localhost?token=x"):
            with self.subTest(url=url):
                self.assertRaises(Invalid, Client, url)
        self.assertRaises(Invalid, Client, token="")
        self.assertRaises(Invalid, Client, token="a\r\nb")
        self.assertRaises(Invalid, Client, token="a", token_file="b")
        self.assertRaises(FileNotFoundError, Client, token_file="/nowhere")

    def test_the_client_works_in_a_forked_process(self) -> None:
        script = (
            "import os, sys\n"
            "from ferrymq import Client\n"
            "client = Client()\n"
            "client.publish(sys.argv[1], 'parent')\n"
            "child = os.fork()\n"
            "client.publish(sys.argv[1], 'child' if child == 0 else 'parent again')\n"
            "if child: sys.exit(os.waitpid(child, 0)[1])\n"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", script, self.topic], env=environment, check=True, timeout=60)
        self.assertEqual({self.receive_one().value for _ in range(3)}, {"parent", "child", "parent again"})
