"""A wire between workers and their broker that can be cut while both ends live."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import urlsplit


class Wire:
    """Listens on this machine and passes every byte on to the broker at `url`."""

    def __init__(self, url: str, default_port: int) -> None:
        parts = urlsplit(url)
        self._to = (parts.hostname or "127.0.0.1", parts.port or default_port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        login = parts.netloc.rpartition("@")[0]
        port = self._server.getsockname()[1]
        place = f"{login}@127.0.0.1:{port}" if login else f"127.0.0.1:{port}"
        self.url = parts._replace(netloc=place).geturl()
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Break every connection there is now; new ones may be made. Returns how many it broke."""
        with self._lock:
            broken, self._open = self._open, []
        for one in broken:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        return len(broken) // 2

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(self._to)
            except OSError:
                near.close()
                continue
            with self._lock:
                self._open += [near, far]
            for ends in ((near, far), (far, near)):
                threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        with self._lock:
            self._open = [one for one in self._open if one not in (source, sink)]
        source.close()
