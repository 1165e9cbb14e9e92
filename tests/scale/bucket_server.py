"""Servers of S3's protocol on loopback: moto's, and one that ignores conditions. As a program, moto's alone.

It prints its address when it is ready.
"""

from __future__ import annotations

import http.client
import logging
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.conftest import clean_environment

REPO = Path(__file__).parent.parent.parent
BUCKET = "bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "us-east-1"}

CONDITIONS = ("if-none-match", "if-match")


def serve_bucket() -> None:
    """Serve an empty bucket until the end of the process."""
    import boto3
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    # One request at a time, as moto looks at a condition and then puts: two threads could both do so.
    server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    address = f"http://127.0.0.1:{server.port}"
    os.environ |= KEYS
    boto3.client("s3", endpoint_url=address).create_bucket(Bucket=BUCKET)
    print(address, flush=True)
    thread.join()


@contextmanager
def run_bucket_server(home: Path) -> Iterator[str]:
    """Run moto's server as a process of its own, and yield its address."""
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.scale.bucket_server"],
        env=clean_environment(home, {"PYTHONPATH": str(REPO)}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.kill()
        server.communicate()


@contextmanager
def run_unsafe_server(safe: str) -> Iterator[str]:
    """Stand in front of the server at `safe`, and tell it of no condition; yields the address."""

    class Unsafe(BaseHTTPRequestHandler):
        def do(self) -> None:
            connection = http.client.HTTPConnection(safe.removeprefix("http://"))
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            kept = {name: value for name, value in self.headers.items() if name.lower() not in CONDITIONS}
            connection.request(self.command, self.path, body, kept)
            answer = connection.getresponse()
            content = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding", "content-length"):
                    self.send_header(name, value)
            self.send_header("content-length", answer.getheader("content-length") or str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            connection.close()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = do  # noqa: N815

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Unsafe)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


if __name__ == "__main__":
    serve_bucket()
