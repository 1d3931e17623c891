"""What kubectl sends, when it sends a request again, and what -v shows of it."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

KUBECTL = [sys.executable, "-I", str(Path(__file__).parents[2] / "src/pybernetes/kubectl/entry.py")]
OK = b"HTTP/1.1 200 OK\r\nx-kubernetes-pf-flowschema-uid: u\r\nContent-Length: 2\r\n\r\nok"
BUSY = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy"
NAMESPACE = b'{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a"}}'
CREATED = b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%s" % (len(NAMESPACE), NAMESPACE)


class Script:
    """A server that answers one request after another from a list; an empty answer closes the connection."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.requests: list[str] = []
        self.server = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while self._answers:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection, connection.makefile("rb") as file:
                while self._answers and (head := self._head(file)):
                    self.requests.append(head)
                    answer = self._answers.pop(0)
                    if not answer:
                        break
                    connection.sendall(answer)

    @staticmethod
    def _head(file: socket.SocketIO) -> str:  # type: ignore[name-defined]
        head = b""
        while (line := file.readline()).strip():
            head += line
        length = re.search(rb"(?i)content-length: (\d+)", head)
        file.read(int(length[1]) if length else 0)
        return str(head.decode())

    def close(self) -> None:
        self._listener.close()


def run(home: Path, script: Script, *argv: str) -> tuple[str, str, int]:
    done = subprocess.run(
        [*KUBECTL, "--server", script.server, *argv],
        env={"HOME": str(home), "PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    script.close()
    return done.stdout, done.stderr, done.returncode


@pytest.fixture
def busy() -> Iterator[Script]:
    """A server that is too busy for two requests."""
    script = Script(BUSY, BUSY, OK)
    yield script
    script.close()


def test_a_request_that_the_server_was_too_busy_for_is_sent_again(busy: Script, tmp_path: Path) -> None:
    stdout, stderr, code = run(tmp_path, busy, "get", "--raw", "/x", "-v=4")
    assert (stdout, code) == ("ok", 0)
    assert len(busy.requests) == 3
    assert [line.partition("] ")[2] for line in stderr.splitlines()] == [
        f'"Got a Retry-After response" delay="0s" attempt={attempt} url="{busy.server}/x"' for attempt in (1, 2)
    ]


def test_a_server_that_stays_busy_is_an_error_after_ten_retries(tmp_path: Path) -> None:
    script = Script(*[BUSY] * 20)
    _, stderr, code = run(tmp_path, script, "get", "--raw", "/x")
    assert (code, len(script.requests)) == (1, 11)
    assert stderr.startswith("Error from server (TooManyRequests): ")


def test_a_create_whose_connection_ends_before_the_answer_is_not_sent_twice(tmp_path: Path) -> None:
    manifest = tmp_path / "two.yaml"
    manifest.write_text('{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"a"}}\n---\n' * 2)
    resources = (
        '{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"namespaces","singularName":"namespace",'
        '"namespaced":false,"kind":"Namespace","verbs":["create"]}]}'
    )
    folder = tmp_path / "cache"
    script = Script(CREATED, b"", CREATED)
    cached = folder / "discovery" / script.server.removeprefix("http://").replace(":", "_")
    (cached / "v1").mkdir(parents=True)
    (cached / "v1/serverresources.json").write_text(resources)
    (cached / "servergroups.json").write_text(
        '{"kind":"APIGroupList","groups":[{"name":"","versions":[{"groupVersion":"v1","version":"v1"}],'
        '"preferredVersion":{"groupVersion":"v1","version":"v1"}}]}'
    )
    argv = ["create", "--validate=false", "--cache-dir", str(folder), "-f", str(manifest)]
    stdout, stderr, code = run(tmp_path, script, *argv)
    assert stdout == "namespace/a created\n"
    assert code == 1
    assert "EOF" in stderr
    assert [head.split()[0] for head in script.requests] == ["POST", "POST"]


def test_requests_name_the_command_in_headers_that_are_not_logged(tmp_path: Path) -> None:
    script = Script(OK)
    _, stderr, _ = run(tmp_path, script, "get", "--raw", "/x", "-v=8")
    assert "Kubectl-Command: kubectl get\r\n" in script.requests[0]
    assert re.search(
        r"Kubectl-Session: [0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\r\n", script.requests[0]
    )
    assert "Kubectl-" not in stderr


@pytest.mark.parametrize("level", [6, 7, 8, 9])
def test_each_level_shows_what_upstreams_shows(level: int, tmp_path: Path) -> None:
    script = Script(OK)
    _, stderr, _ = run(tmp_path, script, "get", "--raw", "/x", f"-v={level}")
    shown = re.sub(r"(?m)^I\d{4} \S+ +\d+ \S+\] ", "", stderr)
    shown = re.sub(r"illiseconds=\d+", "illiseconds=N", shown)
    shown = re.sub(r"kubectl/v\S+ \(\S+\) [^\s\"]+", "AGENT", shown).replace(script.server, "http://HOST")
    shown = re.sub(r"address=\"\S+\"", "address=HOST", shown)
    request = (
        '"Request" verb="GET" url="http://HOST/x" headers=<\n\tAccept: application/json, */*\n\tUser-Agent: AGENT\n >\n'
    )
    headers = "headers=<\n\tContent-Length: 2\n\tX-Kubernetes-Pf-Flowschema-Uid: u\n >"
    assert (
        shown
        == {
            6: '"Response" verb="GET" url="http://HOST/x" status="200 OK" milliseconds=N\n',
            7: f'{request}"Response" status="200 OK" milliseconds=N\n',
            8: f'{request}"Response" status="200 OK" {headers} milliseconds=N\n',
            9: '"Request" curlCommand=<\n\tcurl -v -XGET  -H "Accept: application/json, */*" -H "User-Agent: AGENT"'
            " 'http://HOST/x'\n >\n"
            '"HTTP Trace: Dial succeed" network="tcp" address=HOST\n'
            f'"Response" verb="GET" url="http://HOST/x" status="200 OK" {headers} milliseconds=N'
            " dnsLookupMilliseconds=N dialMilliseconds=N tlsHandshakeMilliseconds=N serverProcessingMilliseconds=N\n",
        }[level]
    )
