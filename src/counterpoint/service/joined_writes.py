"""One packet for a response: what is written to a connection in one turn of the event loop is sent together.

A response is written in two parts, its header and its body. Each send lets go of the interpreter's lock, for which the
event loop then waits behind the threads of handlers.

>>> import asyncio
>>> class Sent(list):
...     def write(self, data):
...         self.append(data)
...     def is_closing(self):
...         return False
>>> async def respond(transport):
...     transport.write(b"header ")
...     transport.write(b"body")
...     await asyncio.sleep(0)
>>> sent = Sent()
>>> async def serve():
...     await respond(JoinedWrites(sent, asyncio.get_running_loop()))
>>> asyncio.run(serve()); sent
[b'header body']
"""

from asyncio import AbstractEventLoop
from typing import Any

_MOST = 2**16
"""How many bytes are kept back: a transport that gets none cannot say that its client reads slowly."""


class JoinedWrites:
    """A transport that keeps back what is written until the end of the turn."""

    def __init__(self, transport: Any, loop: AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._kept = bytearray()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send this at the end of the turn, or when much is kept back."""
        if data and not self._kept:
            self._loop.call_soon(self._send)
        self._kept += data
        if len(self._kept) >= _MOST:
            self._send()

    def close(self) -> None:
        """Send what is kept back, and close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        kept, self._kept = self._kept, bytearray()
        if kept and not self._transport.is_closing():
            self._transport.write(bytes(kept))
