"""Measures batches: how many messages a second are published, and received and acknowledged, 1000 in a request.

Start `ferry dev --broker memory --no-demo`, and with the token that it shows:

    FERRY_BROKER=ferry://127.0.0.1:7070 FERRY_TOKEN=... PYTHONPATH=src python3 bench.py [MESSAGES]
"""

from __future__ import annotations

import sys
import time
import uuid

from ferrymq import Client, Settlement


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    topic = "bench-" + uuid.uuid4().hex[:8]
    body = {"text": "x" * 245}  # 256 bytes
    with Client() as client:
        start = time.perf_counter()
        for _ in range(0, count, 1000):
            client.publish_many(topic, [body] * 1000)
        published = time.perf_counter()
        handled = 0
        while handled < count:
            deliveries = client.receive(topic, max=1000)
            if any(client.settle([Settlement(delivery) for delivery in deliveries])):
                raise SystemExit("some were not settled")
            handled += len(deliveries)
        end = time.perf_counter()
    print(f"published {count / (published - start):,.0f} messages a second")
    print(f"received and acknowledged {count / (end - published):,.0f} messages a second")


if __name__ == "__main__":
    main()
