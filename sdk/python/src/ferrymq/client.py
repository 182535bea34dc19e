"""The client for programs without asyncio."""

from __future__ import annotations

import asyncio
import os
import ssl
import threading
from typing import TYPE_CHECKING, Any, Coroutine, Iterable, Iterator, List, Optional, Sequence, TypeVar

from .aio import AsyncClient
from .deadletters import DeadLetter, Replay
from .delivery import Delivery, Settlement
from .durations import Duration
from .errors import FerryError
from .message import Receipt
from .results import Result

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .message import Options

T = TypeVar("T")


class Client:
    """A server. It is safe for concurrent use by threads; ``AsyncClient`` explains the options.

    It is an AsyncClient on an event loop in a thread of its own, which starts with the first call, and again in a forked process.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        *,
        token: Optional[str] = None,
        token_file: Optional[str] = None,
        retry_for: Duration = 30,
        timeout: Duration = 30,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        def make() -> AsyncClient:
            return AsyncClient(
                url, token=token, token_file=token_file, retry_for=retry_for, timeout=timeout, ssl_context=ssl_context
            )

        self._make = make
        self._client = make()  # now, so that wrong options are refused here
        self._lock = threading.Lock()
        self._loop: Optional[asyncio.AbstractEventLoop] = None
        self._thread: Optional[threading.Thread] = None
        self._pid = os.getpid()
        self._inherited: object = None

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, and end the thread."""
        with self._lock:
            loop, thread, self._loop = self._loop, self._thread, None
        if loop is None or thread is None or self._pid != os.getpid():
            return
        asyncio.run_coroutine_threadsafe(self._client.close(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def publish(self, topic: str, value: Any, **options: "Unpack[Options]") -> Receipt:
        """Publish a value, or a Message. It is stored when this returns."""
        return self.call(self.use().publish(topic, value, **options))

    def publish_many(self, topic: str, messages: Iterable[Any]) -> List[Receipt]:
        """Publish values or Messages in order, with one receipt each. BatchError, with all receipts, if any was not stored."""
        return self.call(self.use().publish_many(topic, messages))

    def receive(
        self, topic: str, group: str = "default", *, max: int = 10, wait: Duration = 10, lease: Optional[Duration] = None
    ) -> List[Delivery]:
        """Wait for messages. Each is ours for the time of its lease: extend it, and settle it. A Worker does all of that."""
        return self.call(self.use().receive(topic, group, max=max, wait=wait, lease=lease))

    def settle(self, settlements: Sequence[Settlement]) -> List[Optional[FerryError]]:
        """End deliveries, with one error each, or None."""
        return self.call(self.use().settle(settlements))

    def extend(self, deliveries: Sequence[Delivery]) -> List[Optional[FerryError]]:
        """Keep deliveries for one more lease from now, with one error each, or None."""
        return self.call(self.use().extend(deliveries))

    def result(self, topic: str, id: str, *, group: str = "default") -> Result:
        """How far a message is in a group now."""
        return self.call(self.use().result(topic, id, group=group))

    def wait(self, topic: str, id: str, *, group: str = "default", timeout: Optional[Duration] = None) -> Result:
        """Wait until a message is done. FailedError if it ended otherwise, and TimeoutError if that takes too long."""
        try:
            return self.call(self.use().wait(topic, id, group=group, timeout=timeout))
        except asyncio.TimeoutError as error:  # another class than TimeoutError before Python 3.11
            raise TimeoutError(*error.args) from None

    def dead_letters(self, topic: str, *, group: str = "", where: str = "") -> Iterator[DeadLetter]:
        """The dead letters of a topic, oldest first, that a filter such as ``reason == "timeout"`` selects."""
        cursor = ""
        while True:
            page = self.use().dead_letters_page(topic, group=group, where=where, cursor=cursor)
            letters, cursor = self.call(page)
            yield from letters
            if not cursor:
                return

    def replay(self, letter: DeadLetter) -> Replay:
        """Bring one dead letter back to work in its group."""
        return self.call(self.use().replay(letter))

    def replay_many(
        self, topic: str, *, group: str = "", where: str = "", dry_run: bool = False, timeout: Optional[Duration] = None
    ) -> Replay:
        """Bring back what a filter selects, and wait for the end of that operation. A dry run only counts."""
        return self.call(self.use().replay_many(topic, group=group, where=where, dry_run=dry_run, timeout=timeout))

    def use(self) -> AsyncClient:
        """The client to make calls of. In a forked process that is another one: connections belong to the parent."""
        if self._pid != os.getpid():
            # Kept, and never touched: the end of a loop would take the parent's out of the selector that both have.
            self._inherited = (self._inherited, self._loop, self._client)
            self._pid, self._loop, self._client, self._lock = os.getpid(), None, self._make(), threading.Lock()
        return self._client

    def call(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a call on the loop, and wait for it."""
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("the loop of this client would wait for itself: in an async handler use an AsyncClient")
        future = asyncio.run_coroutine_threadsafe(coroutine, self.loop())
        try:
            return future.result()
        except BaseException:
            future.cancel()  # does nothing if it has ended; otherwise the caller was interrupted
            raise

    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, running."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="ferrymq", daemon=True)
                self._thread.start()
            return self._loop
