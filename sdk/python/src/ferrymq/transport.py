"""HTTP/1.1 over asyncio streams: what the standard library has only for programs that block."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple
from urllib.parse import urlsplit

from .errors import Invalid, NotApplied, Unknown

#: Connections that were idle for longer are not used again: the server closes them at some time, and a request could cross that.
_IDLE = 20.0
#: The most bytes of one line of a head.
_LINE = 1 << 20

#: Schemes, with the port of a URL that names none.
_PORTS = {"http": 80, "https": 443, "ferry": 7070, "ferrys": 7070}


@dataclass
class Answer:
    """A whole answer of the server."""

    status: int
    headers: Dict[str, str]
    body: bytes


class _Connection:
    """One connection, used for one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._used = time.monotonic()

    def is_fresh(self) -> bool:
        return not self._reader.at_eof() and time.monotonic() - self._used < _IDLE

    def close(self) -> None:
        self._writer.close()

    async def end(self) -> None:
        """Close it, and return when it is closed."""
        self.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def exchange(self, head: bytes, body: bytes) -> Tuple[Answer, bool]:
        """Send a request and read its answer. Also whether the connection may be used again."""
        self._writer.write(head + body)
        await self._writer.drain()
        status, version = await self._read_status()
        headers = await self._read_headers()
        answer = Answer(status, headers, await self._read_body(status, headers))
        self._used = time.monotonic()
        framed = "content-length" in headers or "transfer-encoding" in headers or status == 204
        return answer, framed and version == "HTTP/1.1" and headers.get("connection", "").lower() != "close"

    async def _read_status(self) -> Tuple[int, str]:
        while True:
            line = (await self._reader.readuntil(b"\n")).decode("latin-1").split(None, 2)
            if len(line) < 2 or not line[1].isdigit():
                raise ConnectionError("the answer is not HTTP")
            if int(line[1]) >= 200:
                return int(line[1]), line[0]
            await self._read_headers()  # of an interim answer

    async def _read_headers(self) -> Dict[str, str]:
        headers: Dict[str, str] = {}
        while True:
            line = (await self._reader.readuntil(b"\n")).decode("latin-1").strip()
            if not line:
                return headers
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()

    async def _read_body(self, status: int, headers: Dict[str, str]) -> bytes:
        if status == 204:
            return b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return await self._read_chunks()
        if "content-length" in headers:
            return await self._reader.readexactly(int(headers["content-length"]))
        return await self._reader.read()

    async def _read_chunks(self) -> bytes:
        chunks: List[bytes] = []
        while True:
            size = int((await self._reader.readuntil(b"\n")).split(b";")[0], 16)
            if size == 0:
                await self._read_headers()  # trailers
                return b"".join(chunks)
            chunks.append(await self._reader.readexactly(size))
            await self._reader.readuntil(b"\n")


class Transport:
    """Requests to one server, over connections that are kept. It belongs to one event loop."""

    def __init__(self, url: str, token: str, ssl_context: Optional[ssl.SSLContext]) -> None:
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise Invalid(f"{parts.scheme}://… is not the URL of a server", hint="one looks like http://localhost:7070, or ferrys://host")
        if parts.username or parts.password or parts.query:
            raise Invalid("the URL of the server has a user, a password or options in it", hint="a token belongs in FERRY_TOKEN")
        secure = parts.scheme in ("https", "ferrys")
        self._ssl = (ssl_context or ssl.create_default_context()) if secure else None
        self._host = parts.hostname
        self._port = parts.port or _PORTS[parts.scheme]
        self._path = parts.path.rstrip("/")
        host = f"[{self._host}]" if ":" in self._host else self._host
        self._fixed = f"Host: {host}:{self._port}\r\nAuthorization: Bearer {token}\r\nUser-Agent: ferrymq-python\r\n"
        self._idle: List[_Connection] = []

    async def request(self, method: str, path: str, body: bytes, content_type: str, timeout: float) -> Answer:
        """Ask once. NotApplied if the server was not reached, and Unknown if the answer was lost."""
        try:
            return await asyncio.wait_for(self._request(method, path, body, content_type), timeout)
        except asyncio.TimeoutError:
            raise Unknown(f"no answer within {timeout:g} s", hint="is the server overloaded, or cut off?") from None

    async def _request(self, method: str, path: str, body: bytes, content_type: str) -> Answer:
        connection = await self._connect()
        head = f"{method} {self._path}{path} HTTP/1.1\r\n{self._fixed}Content-Length: {len(body)}\r\n"
        head += f"Content-Type: {content_type}\r\n\r\n"
        try:
            answer, again = await connection.exchange(head.encode(), body)
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            connection.close()
            raise Unknown(f"the connection broke: {error!r}", hint="is the server still there?") from error
        except BaseException:  # cancelled in the middle of an answer
            connection.close()
            raise
        if again:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    async def _connect(self) -> _Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_fresh():
                return connection
            connection.close()
        try:
            return _Connection(*await asyncio.open_connection(self._host, self._port, ssl=self._ssl, limit=_LINE))
        except OSError as error:
            raise NotApplied(f"{self._host}:{self._port} is not reached: {error}", hint="does `ferry serve` run there?") from error

    async def close(self) -> None:
        """Close what is idle."""
        idle, self._idle = self._idle, []
        for connection in idle:
            await connection.end()
