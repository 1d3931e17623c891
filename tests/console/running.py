"""A running `pyb console` for a kubeconfig."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools import PYTHON


@dataclass
class Console:
    """The address, and the one-time key that came with it."""

    port: int
    key: str
    pid: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/#key={self.key}"

    def ask(
        self, method: str, path: str, body: str | None = None, token: str = "", **headers: str
    ) -> tuple[int, dict[str, str], bytes]:
        """One request on a connection of its own: code, headers, body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if token:
            sent["X-Pyb-Session"] = token
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content

    def session(self) -> str:
        """The token for the key."""
        code, _, content = self.ask("POST", "/session", self.key)
        assert code == 200, content
        found: dict[str, Any] = json.loads(content)
        return str(found["token"])


@contextlib.contextmanager
def console(kubeconfig: Path, home: Path) -> Iterator[Console]:
    """Starts the command on any port and ends it."""
    environment = {**os.environ, "HOME": str(home), "KUBECONFIG": str(kubeconfig)}
    command = [*PYTHON, "console", "--no-browser"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#key=(\S+)", line)
        assert found, line + process.stdout.read()
        yield Console(int(found[1]), found[2], process.pid)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
