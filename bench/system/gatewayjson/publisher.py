"""Publishes what it reads: batches of bodies on standard input, each answered by a line when it is stored.

A batch is how many bodies it has, the size of each, and the bodies; numbers have four bytes, big endian.
"""

import struct
import sys

from ferrymq import Client

topic, source, answers = sys.argv[1], sys.stdin.buffer, sys.stdout.buffer
with Client() as client:
    while head := source.read(4):
        (count,) = struct.unpack(">I", head)
        sizes = struct.unpack(f">{count}I", source.read(4 * count))
        client.publish_many(topic, [source.read(size) for size in sizes])
        answers.write(b"stored\n")
        answers.flush()
