"""Workers and servers that are killed in the middle: nothing is lost, and the order of keys is kept."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
import time
import unittest

from ferrymq import Client, Message, Worker

from .support import Outages, Server, WorkerProcess, eventually, handled, out_of_order, read_log, topic

logging.getLogger("ferrymq").setLevel(logging.CRITICAL)

KEYS, EACH = 8, 15


class CrashTest(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.log = os.path.join(directory.name, "log")
        self.topic = topic()

    def check(self) -> None:
        done = handled(self.log)
        self.assertEqual(len(set(done)), KEYS * EACH, "some were lost")
        self.assertIsNone(out_of_order(done))

    def start_worker(self, pause: float, *options: str) -> WorkerProcess:
        worker = WorkerProcess(self.topic, self.log, pause, *options)
        self.addCleanup(worker.kill)
        return worker

    def publish(self, client: Client) -> None:
        client.receive(self.topic, wait=0)  # the group is there before the first message
        client.publish_many(self.topic, [Message({"n": n}, key=f"k{k}") for n in range(EACH) for k in range(KEYS)])

    def test_a_worker_is_killed(self) -> None:
        with Client() as client:
            self.publish(client)
        first = self.start_worker(0.01, "5")
        eventually(lambda: sum(n == 5 for _, n, _ in read_log(self.log)) == 4, "every handler of the first worker hangs")
        first.kill()
        second = self.start_worker(0.01)
        eventually(lambda: len(set(handled(self.log))) == KEYS * EACH, "all are handled")
        self.assertEqual(second.terminate(), 0)
        self.check()

    def test_sigterm_lets_handlers_end(self) -> None:
        with Client() as client:
            self.publish(client)
            worker = self.start_worker(0.3)
            eventually(lambda: len(read_log(self.log)) >= 6, "handlers run")
            self.assertEqual(worker.terminate(), 0)
            started = [(key, n) for key, n, what in read_log(self.log) if what == "start"]
            self.assertEqual(sorted(handled(self.log)), sorted(started))
            got = client.receive(self.topic, max=100, wait=20)
            self.assertTrue(got and all(delivery.deliveries == 1 for delivery in got))
            self.assertFalse({(delivery.key, delivery.value["n"]) for delivery in got} & set(started))

    def test_the_server_is_killed_while_messages_are_published_and_handled(self) -> None:
        server = Server()
        self.addCleanup(server.close)
        with Client(server.url, token=server.token, timeout=5) as client:
            client.receive(self.topic, wait=0)
            lock = threading.Lock()

            def handle(m):  # type: ignore[no-untyped-def]
                time.sleep(0.02)  # so that some are under way when the server is killed
                with lock, open(self.log, "a", encoding="utf-8") as file:
                    file.write(f"{m.key} {m.value['n']} end\n")

            outages = Outages()
            worker = Worker(client, self.topic, handle, concurrency=4, lease=2, poll=0.2, logger=outages.logger)
            threads = [threading.Thread(target=worker.run), threading.Thread(target=self._publish_one_by_one, args=(client,))]
            for thread in threads:
                thread.start()
            for already in (20, 60):
                eventually(lambda: len(handled(self.log)) >= already, f"{already} are handled")
                before = outages.noticed
                server.kill()
                eventually(lambda: outages.noticed > before, "the worker has noticed that the server is away")
                server.start()
            eventually(lambda: len(set(handled(self.log))) == KEYS * EACH, "all are handled")
            worker.stop()
            for thread in threads:
                thread.join()
        self.check()

    def _publish_one_by_one(self, client: Client) -> None:
        for n in range(EACH):
            for k in range(KEYS):
                client.publish(self.topic, {"n": n}, key=f"k{k}")
