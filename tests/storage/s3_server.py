"""A server that speaks S3, on a port of its own, with a bucket; it can be stopped and begun again with what it had."""

from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import pytest
import requests
from moto.server import ThreadedMotoServer

from evals.ports import reserved_port

BUCKET = "adapters"
CREDENTIALS = {"AWS_ACCESS_KEY_ID": "heed", "AWS_SECRET_ACCESS_KEY": "a secret", "AWS_DEFAULT_REGION": "eu-central-1"}


class S3Server:
    """One server. What it stores is in this process, and outlives a stop."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.begin_again()

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        host, port = self.address
        return f"http://{host}:{port}"

    @property
    def address(self) -> tuple[str, int]:
        """The same, as host and port."""
        return "127.0.0.1", self._port

    def make_bucket(self) -> None:
        """Make the bucket, in place of all that a server before has left in this process."""
        requests.post(f"{self.endpoint}/moto-api/reset", timeout=10)
        client = boto3.client("s3", endpoint_url=self.endpoint)
        client.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-central-1"})

    def stop(self) -> None:
        """Answer nothing any more."""
        self._server.stop()

    def begin_again(self) -> None:
        """Listen on its port."""
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=self._port, verbose=False)
        self._server.start()


@contextmanager
def s3_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A server with an empty bucket, where the driver looks for one."""
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    with reserved_port() as port:
        server = S3Server(port)
        monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
        try:
            server.make_bucket()
            yield server
        finally:
            server.stop()
