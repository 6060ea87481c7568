"""A recorder of side effects in a process of its own: `POST /name` counts, `GET /` tells."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

_SERVER = """
import json
from http.server import BaseHTTPRequestHandler, HTTPServer
counts = {}
class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        counts[self.path[1:]] = counts.get(self.path[1:], 0) + 1
        self.do_GET()
    def do_GET(self):
        body = json.dumps(counts).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_): pass
server = HTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


class Effects:
    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"

    def add(self, name: str) -> None:
        """Have an effect."""
        with urllib.request.urlopen(f"{self.url}/{name}", data=b"") as answer:
            answer.read()

    def counts(self) -> dict[str, int]:
        """How often each was had."""
        with urllib.request.urlopen(self.url) as answer:
            return json.loads(answer.read())


@contextmanager
def effects() -> Iterator[Effects]:
    process = subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield Effects(int(process.stdout.readline()))
    finally:
        process.kill()
        process.communicate()
