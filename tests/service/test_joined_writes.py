"""Writes of one turn leave together, and each connection sends them at once."""

import asyncio
import socket
from contextlib import closing

import httpx
from tests.service.process import Served

from counterpoint.service.connections import ConnectionGuard, GuardedListener
from counterpoint.service.joined_writes import _MOST, JoinedWrites
from counterpoint.service.limits import Limits
from counterpoint.service.server import Listening, listener_at


class Sent(list):
    is_closed = False

    def write(self, data):
        assert not self.is_closed
        self.append(data)

    def is_closing(self):
        return self.is_closed

    def close(self):
        self.is_closed = True


def written(*turns, close=False, lost=False):
    """What leaves after these writes, turn by turn."""
    sent = Sent()

    async def run():
        transport = JoinedWrites(sent, asyncio.get_running_loop())
        for turn in turns:
            for data in turn:
                transport.write(data)
            if close:
                transport.close()
            if lost:
                sent.close()
            await asyncio.sleep(0)

    asyncio.run(run())
    return sent


def test_writes_of_one_turn_are_one_send_and_those_of_the_next_are_another():
    assert written([b"header", b"body", b""], [b"event"]) == [b"headerbody", b"event"]


def test_what_was_written_is_sent_before_the_transport_closes():
    assert written([b"header", b"body"], close=True) == [b"headerbody"]


def test_nothing_is_sent_to_a_transport_that_has_closed_by_itself():
    assert written([b"header"], lost=True) == []


def test_a_large_response_is_not_kept_back_until_it_is_whole():
    part = bytes(_MOST // 2)
    assert list(map(len, written([part] * 5))) == [_MOST, _MOST, _MOST // 2]


def test_an_accepted_connection_sends_small_packets_at_once():
    """Else the kernel keeps a response back until its client has acknowledged the one before, some 40 ms later."""

    async def accept():
        accepted = asyncio.get_running_loop().create_future()

        class Protocol(asyncio.Protocol):
            def connection_made(self, transport):
                accepted.set_result(
                    transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
                )

        listener = GuardedListener(listener_at(Listening(port=0)), ConnectionGuard(Limits()))
        server = await asyncio.get_running_loop().create_server(Protocol, sock=listener)
        with closing(socket.create_connection(listener.getsockname())):
            found = await accepted
        server.close()
        return found

    assert asyncio.run(accept())


def test_a_response_arrives_in_one_piece(tmp_path):
    with Served(tmp_path) as service:
        url = httpx.URL(service.url)
        with socket.create_connection((url.host, url.port), timeout=60) as connection:
            for _ in range(20):
                connection.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                assert connection.recv(2**16).endswith(b'{"status":"alive"}')
