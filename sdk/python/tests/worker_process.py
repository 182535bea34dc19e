"""A worker in a process of its own: worker_process.py TOPIC LOG SECONDS [HANG]. It hangs at messages with the number HANG."""

from __future__ import annotations

import sys
import threading
import time

from ferrymq import Client, Delivery, Worker


def main() -> None:
    name, log, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
    hang = int(sys.argv[4]) if len(sys.argv) > 4 else -1
    lock = threading.Lock()

    def note(delivery: Delivery, what: str) -> None:
        with lock, open(log, "a", encoding="utf-8") as file:
            file.write(f"{delivery.key} {delivery.value['n']} {what}\n")

    def handle(delivery: Delivery) -> None:
        note(delivery, "start")
        if delivery.value["n"] == hang:
            threading.Event().wait()
        time.sleep(pause)
        note(delivery, "end")

    with Client() as client:
        Worker(client, name, handle, concurrency=4, lease=6, poll=0.2).run()


if __name__ == "__main__":
    main()
