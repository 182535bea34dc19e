"""Workers: they receive messages, call a handler for each, and settle what it decided."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, List, Optional, Set, TypedDict, Union

from .aio import AsyncClient
from .backoff import Backoff
from .client import Client
from .delivery import Delivery, Settlement
from .durations import Duration, seconds
from .errors import FerryError, Invalid
from .lanes import Lanes
from .leases import Held, Leases
from .message import Message, to_line, to_message
from .outcomes import Dead, Drop, Outcome, Release, Retry
from .settler import Settler

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: Handles one message, with or without asyncio. What it returns is its result, for a worker that keeps results.
Handler = Union[Callable[[Delivery], Any], Callable[[Delivery], Awaitable[Any]]]


class WorkerOptions(TypedDict, total=False):
    """The options of a worker, which ``AsyncWorker`` explains."""

    group: str
    concurrency: int
    prefetch: Optional[int]
    lease: Optional[Duration]
    poll: Duration
    drain: Duration
    results: bool
    logger: Optional[logging.Logger]


_SIGNALS = (signal.SIGTERM, signal.SIGINT)
#: How long handlers that were cancelled, and the last settlements, may take before the worker gives up on them.
_GRACE = 5.0
#: The most messages of one receive, and the most that are settled and of which the server has not said so.
_MOST = 1000


class AsyncWorker:
    """Handles the messages of one group of a topic.

    The handler is a coroutine function, or a plain one, which runs in a thread. It gets a ``Delivery``: a return acknowledges it;
    ``Retry``, ``Dead``, ``Release`` and ``Drop`` say something else; any other exception is a failed attempt. Messages of one key
    are handled one after the other. Leases are renewed as long as a handler runs; when one is lost all the same the delivery is
    cancelled, and never settled.

    ``concurrency`` is the most handlers at once, ``prefetch`` the most messages that wait for one (as many, by default). ``lease``
    is how long a message stays with a worker that is not heard of; the broker's default if none is given. ``poll`` is how long one
    request waits for messages, and so the least time that a stop may take. ``drain`` is how long handlers may go on after a stop.
    With ``results`` what the handler returns is kept for an hour, for who calls ``wait``: a value as in ``publish``, or a
    ``Message`` with its content type.
    """

    def __init__(
        self,
        client: AsyncClient,
        topic: str,
        handler: Handler,
        *,
        group: str = "default",
        concurrency: int = 10,
        prefetch: Optional[int] = None,
        lease: Optional[Duration] = None,
        poll: Duration = 2,
        drain: Duration = 30,
        results: bool = False,
        logger: Optional[logging.Logger] = None,
    ) -> None:
        if concurrency < 1 or (prefetch is not None and prefetch < 0):
            raise Invalid("concurrency is below 1, or prefetch below 0", hint="leave them out for the defaults")
        self._client = client
        self._topic = topic
        self._group = group
        self._handler = handler
        self._concurrency = concurrency
        self._limit = concurrency + (concurrency if prefetch is None else prefetch)
        self._lease = lease
        self._poll = poll
        self._drain = seconds(drain)
        self._results = results
        self._log = logger or logging.getLogger("ferrymq")
        self._threads: Optional[ThreadPoolExecutor] = None
        self._stop: Optional[asyncio.Event] = None
        self._stopped = False

    def stop(self) -> None:
        """Receive nothing more; ``run`` returns when the handlers have ended. Call it on the worker's loop."""
        self._stopped = True
        if self._stop is not None:
            self._stop.set()

    async def run(self, *, signals: bool = True) -> None:
        """Work until stop, or until SIGTERM or SIGINT unless signals are left to others. Raises what cannot be helped by waiting."""
        self._begin()
        unhook = self._on_signals() if signals else None
        background = [asyncio.ensure_future(self._leases.run()), asyncio.ensure_future(self._settler.run())]
        fetching = asyncio.ensure_future(self._fetch())
        stop = asyncio.ensure_future(self._asked_to_stop())
        try:
            await asyncio.wait({fetching, stop, *background}, return_when=asyncio.FIRST_COMPLETED)
            self.stop()
            await asyncio.wait({fetching})
            await self._finish()
            for role in (fetching, *background):
                if role.done():
                    role.result()  # why it ended, if it ended by itself
        finally:
            if unhook is not None:
                unhook()
            await _cancel([fetching, stop, *background])
            if self._threads is not None:
                self._threads.shutdown(wait=False)

    def _begin(self) -> None:
        self._stop = asyncio.Event()
        if self._stopped:
            self._stop.set()
        self._changed = asyncio.Event()
        self._lanes = Lanes()
        self._leases = Leases(self._client, self._log, self._changed.set)
        self._settler = Settler(self._client, self._leases, self._log)
        self._running: Set[Held] = set()
        self._tasks: "Set[asyncio.Task[None]]" = set()
        self._is_async = _is_async(self._handler)
        if not self._is_async:
            self._threads = ThreadPoolExecutor(self._concurrency, thread_name_prefix=f"ferry-{self._topic}")

    async def _asked_to_stop(self) -> None:
        assert self._stop is not None
        await self._stop.wait()

    def _on_signals(self) -> Callable[[], None]:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(NotImplementedError):  # on Windows, whose loops know no signals
            for number in _SIGNALS:
                loop.add_signal_handler(number, self.stop)

        def unhook() -> None:
            with contextlib.suppress(NotImplementedError):
                for number in _SIGNALS:
                    loop.remove_signal_handler(number)

        return unhook

    # Receiving

    async def _fetch(self) -> None:
        backoff = Backoff()
        while await self._has_room():
            try:
                deliveries = await self._client.receive(
                    self._topic, self._group, max=min(_MOST, self._limit - self._in_hand()), wait=self._poll, lease=self._lease
                )
            except FerryError as error:
                if not error.transient:
                    raise
                self._log.warning("ferry: nothing is received, which is tried again: %s", error)
                await self._pause(backoff.pause())
                continue
            backoff.reset()
            for delivery in deliveries:
                self._lanes.add(self._leases.add(delivery))
            self._start()

    async def _has_room(self) -> bool:
        """Wait until no more is here than runs, and report whether to go on."""
        while not self._stopped and self._is_full():
            self._changed.clear()
            stop = asyncio.ensure_future(self._asked_to_stop())
            change = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait({stop, change}, return_when=asyncio.FIRST_COMPLETED)
            await _cancel([stop, change])
        return not self._stopped

    def _in_hand(self) -> int:
        """How many wait for a handler, or run."""
        return len(self._lanes) + len(self._running)

    def _is_full(self) -> bool:
        """Whether to ask for more would be too early: there is enough to do, or too much that the server has not taken back yet."""
        in_hand = self._in_hand()
        return in_hand > self._concurrency or in_hand >= self._limit or len(self._leases) - in_hand >= _MOST

    async def _pause(self, pause: float) -> None:
        try:
            await asyncio.wait_for(self._asked_to_stop(), pause)
        except asyncio.TimeoutError:
            pass

    # Handling

    def _start(self) -> None:
        """Start handlers, as many as may run."""
        while len(self._running) < self._concurrency:
            held = self._lanes.next()
            if held is None:
                return
            self._running.add(held)
            task = asyncio.ensure_future(self._handle(held))
            held.task = task if self._is_async else None
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _handle(self, held: Held) -> None:
        settlement = await self._decide(held)
        held.task = None
        self._running.discard(held)
        self._lanes.done(held)
        self._changed.set()
        if not held.lost:
            self._settler.add(held, settlement)
        if not self._stopped:
            self._start()

    async def _decide(self, held: Held) -> Settlement:
        """Call the handler, and say what becomes of its message."""
        delivery = held.delivery
        try:
            if self._threads is None:
                value = await self._handler(delivery)
            else:
                value = await asyncio.get_running_loop().run_in_executor(self._threads, self._handler, delivery)
            result = _result(value) if self._results else None
        except asyncio.CancelledError:
            if delivery.cancelled.is_set():
                return Settlement(delivery, "release")
            return Settlement(delivery, "retry", error="the handler was cancelled")
        except Outcome as outcome:
            return _settlement(delivery, outcome)
        except BaseException as error:
            if self._threads is None and not isinstance(error, (Exception, SystemExit)):
                raise  # Ctrl-C, and not of the handler: to a thread it never comes
            if delivery.cancelled.is_set():  # it was told to end
                return Settlement(delivery, "release")
            self._log.warning("ferry: attempt %d of %s/%s failed", delivery.attempt, delivery.topic, delivery.id, exc_info=error)
            return Settlement(delivery, "retry", error=_text(error))
        return Settlement(delivery, "ack", emit=delivery.emitted, result=result)

    # Stopping

    async def _finish(self) -> None:
        """Give back what has not started, wait for what runs, and settle all of it."""
        for held in self._lanes.clear():
            self._settler.add(held, Settlement(held.delivery, "release"))
        await _wait(self._tasks, self._drain)
        for held in list(self._running):
            held.cancel()
        await _wait(self._tasks, _GRACE)
        for held in list(self._running):  # a thread cannot be ended: its lease runs out, and nobody overlaps with it before
            self._log.error("ferry: the handler of %s/%s does not end; its message comes again", held.delivery.topic, held.delivery.id)
            held.lost = True
            self._leases.drop(held)
        for held in self._lanes.clear():  # what waited behind a key
            self._settler.add(held, Settlement(held.delivery, "release"))
        await self._settled()

    async def _settled(self) -> None:
        end = asyncio.get_running_loop().time() + _GRACE
        while len(self._leases) and asyncio.get_running_loop().time() < end:
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), _GRACE)
            except asyncio.TimeoutError:
                return


def _is_async(handler: Handler) -> bool:
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None))


def _text(error: BaseException) -> str:
    """What an exception says. One that cannot say it has failed all the same."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def _settlement(delivery: Delivery, outcome: Outcome) -> Settlement:
    if isinstance(outcome, Retry):
        return Settlement(delivery, "retry", after=outcome.after, error=str(outcome))
    if isinstance(outcome, Dead):
        return Settlement(delivery, "dead", reason=outcome.reason, error=str(outcome))
    if isinstance(outcome, Release):
        return Settlement(delivery, "release", after=outcome.after)
    if isinstance(outcome, Drop):
        return Settlement(delivery, "drop")
    return Settlement(delivery, "retry", error=str(outcome))


def _result(value: Any) -> Message:
    """What a handler returned. What has no form in JSON is refused here, as a failed attempt."""
    message = to_message(value)
    to_line(message.body())
    return message


async def _wait(tasks: "Set[asyncio.Task[None]]", timeout: float) -> None:
    if tasks:
        await asyncio.wait(set(tasks), timeout=timeout)


async def _cancel(tasks: "List[asyncio.Future[Any]]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class Worker:
    """Handles the messages of one group of a topic, in a program without asyncio. ``AsyncWorker`` explains the options."""

    def __init__(self, client: Client, topic: str, handler: Handler, **options: "Unpack[WorkerOptions]") -> None:
        self._client = client
        self._worker = AsyncWorker(client.use(), topic, handler, **options)

    def stop(self) -> None:
        """Receive nothing more; ``run`` returns when the handlers have ended. Any thread may call it."""
        self._client.loop().call_soon_threadsafe(self._worker.stop)

    def run(self, *, signals: bool = True) -> None:
        """Work until stop; in the main thread also until SIGTERM or SIGINT, unless signals are left to others."""
        restore = self._on_signals() if signals and threading.current_thread() is threading.main_thread() else {}
        try:
            self._client.call(self._worker.run(signals=False))
        finally:
            for number, before in restore.items():
                signal.signal(number, before)

    def _on_signals(self) -> Dict[int, Any]:
        def stop(_number: int, _frame: Optional[FrameType]) -> None:
            self.stop()

        return {number: signal.signal(number, stop) for number in _SIGNALS}
