"""A server of one's own, a way to it that can be cut, and waiting for what must happen."""

from __future__ import annotations

import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from typing import Callable, List, Optional, Tuple

PATIENCE = 60.0


def topic() -> str:
    """A topic that no other test has."""
    return "py-" + uuid.uuid4().hex[:12]


def eventually(condition: Callable[[], bool], what: str) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"it did not happen within {PATIENCE:g} s: {what}")
        time.sleep(0.01)


class Server:
    """A `ferry serve` in front of a disk broker, which can be killed and started again at the same address."""

    def __init__(self) -> None:
        self._binary = os.environ["FERRY_BIN"]
        self._directory = tempfile.mkdtemp(prefix="ferry-sdk-")
        self._broker = "disk://" + os.path.join(self._directory, "broker")
        self._listen = "127.0.0.1:0"
        command = [self._binary, "token", "create", "sdk", "--broker", self._broker]
        command += ["--scope", "publish,consume,view,operate,payload"]
        self.token = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
        self.start()

    def start(self) -> None:
        """Start it, and return when it answers."""
        command = [self._binary, "serve", "--broker", self._broker, "--listen", self._listen]
        self._log = open(os.path.join(self._directory, "log"), "ab")
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            found = re.search(r"running\s+http://(\S+)", line)
            if found:
                self._listen = found.group(1)
                self.url = "http://" + self._listen
                return
        raise AssertionError("the server did not start: " + open(self._log.name).read())

    def kill(self) -> None:
        """End it as a crash does."""
        self._end(signal.SIGKILL)

    def close(self) -> None:
        """End it for good."""
        self._end(signal.SIGTERM)
        shutil.rmtree(self._directory)

    def _end(self, number: int) -> None:
        self._process.send_signal(number)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._log.close()


class Way:
    """A way to a server. It can lose answers, and it can be cut, so that nothing arrives and nobody is told."""

    def __init__(self, url: str) -> None:
        host, port = re.sub(r"^\w+://", "", url).split(":")
        self._target = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self._listener.getsockname()[1]
        self._sockets: List[socket.socket] = []
        self._open = threading.Event()
        self._open.set()
        self.losing = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Let nothing through."""
        self._open.clear()

    def mend(self) -> None:
        """Break what hangs, and let new connections through."""
        for one in self._sockets:
            _shut(one)
        self._open.set()

    def close(self) -> None:
        """End it."""
        _shut(self._listener)
        self.mend()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
                far = socket.create_connection(self._target)
            except OSError:
                return
            self._sockets += [near, far]
            threading.Thread(target=self._pump, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(far, near, True), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        try:
            while True:
                data = source.recv(1 << 16)
                self._open.wait()
                if answers and self.losing > 0 and data:
                    self.losing -= 1
                    break
                if not data:
                    break
                sink.sendall(data)
        except OSError:
            pass
        _shut(source)
        _shut(sink)


def _shut(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    one.close()


class Outages(logging.Handler):
    """Counts what a worker says of a server that it does not reach."""

    def __init__(self) -> None:
        super().__init__()
        self.noticed = 0
        self.logger = logging.Logger("outages")
        self.logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Count a line."""
        self.noticed += "nothing is received" in record.getMessage()


class WorkerProcess:
    """A worker in a process of its own, which writes what it handles into a file: key, number and whether it ends."""

    def __init__(self, name: str, log: str, pause: float, *options: str) -> None:
        script = os.path.join(os.path.dirname(__file__), "worker_process.py")
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen([sys.executable, script, name, log, str(pause), *options], env=environment)

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.kill()
        self._process.wait()

    def terminate(self) -> int:
        """Ask it to stop, and return its exit status."""
        self._process.terminate()
        return self._process.wait(PATIENCE)


def read_log(path: str) -> List[Tuple[str, int, str]]:
    """What workers wrote: key, number, and start or end. The last line of a killed one may be cut off."""
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        lines = [line.split() for line in file if line.endswith("\n")]
    return [(key, int(number), what) for key, number, what in lines]


def handled(path: str) -> List[Tuple[str, int]]:
    """Keys and numbers of what was handled to the end."""
    return [(key, number) for key, number, what in read_log(path) if what == "end"]


def out_of_order(done: List[Tuple[str, int]]) -> Optional[str]:
    """The first message that overtook one of its key. Repeats are no overtaking."""
    highest: dict = {}
    for key, number in done:
        if number > highest.get(key, -1) + 1:
            return f"{key}: {number} after {highest.get(key, -1)}"
        highest[key] = max(number, highest.get(key, -1))
    return None
