"""A line to a server that breaks: a proxy that cuts connections after so many bytes of answers."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from typing_extensions import Self


class BrokenLine:
    """Passes bytes on, until it does not."""

    def __init__(self, url: str) -> None:
        target = urlsplit(url)
        self._target = (target.hostname, target.port or 80)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._limit = 0
        self._times = 0
        self._open: list[socket.socket] = []
        self.connections = 0
        self.cuts = 0
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def stop(self) -> None:
        """Cut the connections that there are, and all that come."""
        self.cut_after(0, times=1_000_000)
        for one in self._open:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def cut_after(self, size: int, times: int) -> None:
        """Cut so many of the next connections, each after so many bytes of answers."""
        self._limit, self._times = size, times

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                self._open.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.create_connection(self._target)
        threading.Thread(target=_pass_on, args=(client, server), daemon=True).start()
        left = self._limit if self.cuts < self._times else None
        with contextlib.suppress(OSError):
            while chunk := server.recv(65536):
                if left is not None and len(chunk) > left:
                    client.sendall(chunk[:left])
                    self.cuts += 1
                    break
                client.sendall(chunk)
                left = None if left is None else left - len(chunk)
        for one in (client, server):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()


def _pass_on(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            target.sendall(chunk)
        target.shutdown(socket.SHUT_RDWR)
