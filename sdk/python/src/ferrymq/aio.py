"""The client for asyncio."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
import uuid
from typing import TYPE_CHECKING, Any, AsyncIterator, Dict, Iterable, List, Optional, Sequence, Tuple
from urllib.parse import quote, urlencode

from .backoff import Backoff
from .deadletters import DeadLetter, Replay
from .delivery import Delivery, Settlement
from .durations import Duration, seconds, to_text
from .errors import BatchError, FailedError, FerryError, NotApplied, from_answer, from_problem
from .message import Receipt, to_line, to_message, with_id
from .results import Result
from .settings import find_token, find_url
from .transport import Transport

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from .message import Options

#: The most messages and bytes of one request. The server takes ten times as many of the first.
_MOST_MESSAGES = 1000
_MOST_BYTES = 4 << 20
#: The longest that the server lets a request wait.
_LONGEST_WAIT = 20.0


class AsyncClient:
    """A server, for one event loop.

    ``url`` defaults to FERRY_BROKER; ``ferry://`` and ``ferrys://`` are taken too. The token is the argument, the content of
    ``token_file``, or FERRY_TOKEN. A publish is repeated for up to ``retry_for`` seconds while the server is away or full, under
    the same ids, so that it is stored once. ``timeout`` is that of one request.
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
        self._transport = Transport(find_url(url), find_token(token, token_file), ssl_context)
        self._retry_for = seconds(retry_for)
        self._timeout = seconds(timeout)

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections that are idle."""
        await self._transport.close()

    # Publishing

    async def publish(self, topic: str, value: Any, **options: "Unpack[Options]") -> Receipt:
        """Publish a value, or a Message. It is stored when this returns."""
        message = with_id(to_message(value, options))
        receipt = (await self._publish(topic, [to_line(message.to_json())]))[0]
        if receipt.error is not None:
            raise receipt.error
        return receipt

    async def publish_many(self, topic: str, messages: Iterable[Any]) -> List[Receipt]:
        """Publish values or Messages in order, with one receipt each. BatchError, with all receipts, if any was not stored."""
        whole = [with_id(to_message(value)) for value in messages]
        lines = [to_line(message.to_json()) for message in whole]
        receipts: List[Receipt] = []
        for batch in _batches(lines):
            receipts += await self._publish(topic, batch)
            if any(receipt.error is not None and receipt.error.transient for receipt in receipts):
                break  # what follows would overtake it
        receipts += [Receipt(error=_held_back()) for _ in lines[len(receipts) :]]
        if any(receipt.error is not None for receipt in receipts):
            raise BatchError(receipts)
        return receipts

    async def _publish(self, topic: str, lines: Sequence[bytes]) -> List[Receipt]:
        """Publish one request, and repeat it while nothing of it was stored and that may change."""
        end, backoff = time.monotonic() + self._retry_for, Backoff()
        while True:
            receipts = await self._publish_once(topic, lines)
            pause = backoff.pause()
            hopeless = any(receipt.error is None or not receipt.error.transient for receipt in receipts)
            if hopeless or time.monotonic() + pause >= end:
                return receipts
            await asyncio.sleep(pause)

    async def _publish_once(self, topic: str, lines: Sequence[bytes]) -> List[Receipt]:
        try:
            path = f"/v1/topics/{_quoted(topic)}/messages"
            answer = await self._ask("POST", path, b"\n".join(lines), content_type="application/x-ndjson")
        except FerryError as error:
            return [Receipt(error=error) for _ in lines]
        return [Receipt.from_json(receipt) for receipt in answer["receipts"]]

    # Receiving, without a worker

    async def receive(
        self, topic: str, group: str = "default", *, max: int = 10, wait: Duration = 10, lease: Optional[Duration] = None
    ) -> List[Delivery]:
        """Wait for messages. Each is ours for the time of its lease: extend it, and settle it. A Worker does all of that."""
        body: Dict[str, Any] = {"max": max, "wait": to_text(wait)}
        if lease is not None:
            body["lease"] = to_text(lease)
        path = f"/v1/topics/{_quoted(topic)}/groups/{_quoted(group)}/receive"
        answer = await self._ask("POST", path, to_line(body), timeout=self._timeout + seconds(wait))
        return [Delivery.from_json(message) for message in answer["messages"]]

    async def settle(self, settlements: Sequence[Settlement]) -> List[Optional[FerryError]]:
        """End deliveries, with one error each, or None."""
        body = to_line({"settle": [settlement.to_json() for settlement in settlements]})
        return _errors((await self._ask("POST", "/v1/settle", body))["settled"])

    async def extend(self, deliveries: Sequence[Delivery], *, timeout: Optional[float] = None) -> List[Optional[FerryError]]:
        """Keep deliveries for one more lease from now, with one error each, or None."""
        body = to_line({"leases": [delivery.lease for delivery in deliveries]})
        return _errors((await self._ask("POST", "/v1/extend", body, timeout=timeout))["extended"])

    # Results

    async def result(self, topic: str, id: str, *, group: str = "default") -> Result:
        """How far a message is in a group now."""
        return await self._result(topic, id, group, 0)

    async def wait(self, topic: str, id: str, *, group: str = "default", timeout: Optional[Duration] = None) -> Result:
        """Wait until a message is done. FailedError if it ended otherwise, and asyncio.TimeoutError if that takes too long."""
        end = None if timeout is None else time.monotonic() + seconds(timeout)
        backoff = Backoff()
        while True:
            left = _LONGEST_WAIT if end is None else min(_LONGEST_WAIT, end - time.monotonic())
            if left <= 0:
                raise asyncio.TimeoutError(f"{topic}/{group}/{id} has not ended within {timeout}")
            try:
                result = await self._result(topic, id, group, left)
            except FerryError as error:
                if not error.transient:
                    raise
                await asyncio.sleep(min(backoff.pause(), left))
                continue
            if result.ended and result.state != "done":
                raise FailedError(result)
            if result.ended:
                return result

    async def _result(self, topic: str, id: str, group: str, wait: float) -> Result:
        path = f"/v1/results/{_quoted(topic)}/{_quoted(group)}/{_quoted(id)}"
        if wait > 0:
            path += "?" + urlencode({"wait": to_text(wait)})
        return Result.from_json(await self._ask("GET", path, timeout=self._timeout + wait))

    # Dead letters

    async def dead_letters(self, topic: str, *, group: str = "", where: str = "") -> AsyncIterator[DeadLetter]:
        """The dead letters of a topic, oldest first, that a filter such as ``reason == "timeout"`` selects."""
        cursor = ""
        while True:
            letters, cursor = await self.dead_letters_page(topic, group=group, where=where, cursor=cursor)
            for letter in letters:
                yield letter
            if not cursor:
                return

    async def dead_letters_page(
        self, topic: str, *, group: str = "", where: str = "", cursor: str = "", limit: int = 100
    ) -> Tuple[List[DeadLetter], str]:
        """One page of them, and the cursor of the next one; empty at the end. A page may be empty although there is more."""
        query = {"topic": topic, "group": group, "where": where, "cursor": cursor, "limit": str(limit)}
        path = "/api/v1/dead?" + urlencode({name: value for name, value in query.items() if value})
        page = await self._ask("GET", path)
        return [DeadLetter.from_json(letter) for letter in page["messages"] or []], page.get("next", "")

    async def replay(self, letter: DeadLetter) -> Replay:
        """Bring one dead letter back to work in its group."""
        path = "/".join(_quoted(part) for part in (letter.topic, letter.group, letter.id))
        return Replay.from_json(await self._ask("POST", f"/api/v1/dead/{path}/replay", b"{}"))

    async def replay_many(
        self, topic: str, *, group: str = "", where: str = "", dry_run: bool = False, timeout: Optional[Duration] = None
    ) -> Replay:
        """Bring back what a filter selects, and wait for the end of that operation. A dry run only counts."""
        body: Dict[str, Any] = {"id": uuid.uuid4().hex, "topic": topic, "dry_run": dry_run}
        body.update({name: value for name, value in (("group", group), ("where", where)) if value})
        operation = await self._ask("POST", "/api/v1/dead/replay", to_line(body))
        return await asyncio.wait_for(self._ended(operation), None if timeout is None else seconds(timeout))

    async def _ended(self, operation: Dict[str, Any]) -> Replay:
        pause = 0.05
        while operation["state"] in ("waiting", "running"):
            await asyncio.sleep(pause)
            pause = min(1.0, 2 * pause)
            operation = await self._ask("GET", "/api/v1/operations/" + _quoted(operation["operation"]))
        if operation["state"] != "done":
            raise FerryError(f"the replay is {operation['state']}: {operation.get('problem', '')}", code="failed", hint="see `ferry operation ls`")
        return Replay.from_json(operation)

    # One request

    async def _ask(
        self, method: str, path: str, body: bytes = b"", *, content_type: str = "application/json", timeout: Optional[float] = None
    ) -> Dict[str, Any]:
        answer = await self._transport.request(method, path, body, content_type, self._timeout if timeout is None else timeout)
        if answer.status >= 300:
            raise from_answer(answer.status, answer.body)
        try:
            decoded = json.loads(answer.body)
        except ValueError:
            raise FerryError("the answer is no JSON", hint="is the URL that of a Ferry server?", status=answer.status) from None
        if not isinstance(decoded, dict):
            raise FerryError("the answer is no object", hint="is the URL that of a Ferry server?", status=answer.status)
        return decoded


def _quoted(part: str) -> str:
    return quote(part, safe="")


def _errors(outcomes: Sequence[Dict[str, Any]]) -> List[Optional[FerryError]]:
    return [None if outcome.get("ok") else from_problem(outcome.get("error") or {}) for outcome in outcomes]


def _held_back() -> NotApplied:
    return NotApplied("a message before it was not stored", hint="publish it again, after those before it")


def _batches(lines: Sequence[bytes]) -> Iterable[List[bytes]]:
    """The lines in requests that the server takes."""
    batch: List[bytes] = []
    size = 0
    for line in lines:
        if batch and (len(batch) == _MOST_MESSAGES or size + len(line) > _MOST_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line) + 1
    if batch:
        yield batch
