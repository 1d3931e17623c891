"""`kubectl cp` streams archives, goes on after a lost connection with --retries, and ends with tar's exit code."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from pybernetes.kubectl import main as kubectl
from pybernetes.kubectl import websocket
from pybernetes.kubectl.commands import cp

SUCCESS = (websocket.ERROR, b'{"status": "Success"}')
FAILURE = (
    websocket.ERROR,
    json.dumps(
        {
            "status": "Failure",
            "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": "2"}]},
        }
    ).encode(),
)


class Session:
    """One exec: the messages that the container sends, and what it got on stdin."""

    protocol = "v5.channel.k8s.io"

    def __init__(self, *messages: tuple[int, bytes] | None, room: int = 1 << 30) -> None:
        self._messages = list(messages)
        self._room = room
        self.stdin = b""

    def send(self, channel: int, payload: bytes) -> None:
        if channel == websocket.STDIN:
            if len(self.stdin) > self._room:
                raise BrokenPipeError
            self.stdin += payload

    def receive(self) -> tuple[int, bytes] | None:
        return self._messages.pop(0)

    def close(self) -> None:
        pass


class Container:
    """Gives one session after another, and remembers their commands."""

    def __init__(self, *sessions: Session) -> None:
        self._sessions = list(sessions)
        self.commands: list[list[str]] = []

    def __call__(self, context: Any, place: str, command: list[str], stdin: bool) -> Session:
        self.commands.append(command)
        return self._sessions.pop(0)


def use(monkeypatch: pytest.MonkeyPatch, *sessions: Session) -> Container:
    container = Container(*sessions)
    monkeypatch.setattr(cp, "_session", container)
    return container


def archive(name: str, content: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.size = len(content)
        tar.addfile(member, io.BytesIO(content))
    return out.getvalue()


def test_a_broken_copy_goes_on_where_it_broke_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytes(range(256)) * 300
    whole = archive("tmp/it's", content)
    first = Session((websocket.STDOUT, whole[:20_000]), None)
    second = Session((websocket.STDOUT, whole[20_000:30_000]), None)
    third = Session((websocket.STDOUT, whole[30_000:]), SUCCESS)
    container = use(monkeypatch, first, second, third)
    assert kubectl.main(["cp", "web:/tmp/it's", str(tmp_path / "back"), "--retries=2"]) == 0
    assert (tmp_path / "back").read_bytes() == content
    quoted = "'/tmp/it'\\''s'"
    assert container.commands == [["sh", "-c", f"tar cf - {quoted} | tail -c+{at}"] for at in (1, 20_001, 30_001)]
    assert capsys.readouterr().out == (
        "Resuming copy at 20000 bytes, retry 1/2\nResuming copy at 30000 bytes, retry 2/2\n"
    )


@pytest.mark.parametrize(("retries", "sessions"), [(0, 1), (1, 2)])
def test_a_copy_that_stays_broken_is_an_error(
    retries: int, sessions: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use(monkeypatch, *(Session((websocket.STDOUT, b""), None) for _ in range(sessions)))
    assert kubectl.main(["cp", "web:/x", str(tmp_path / "back"), f"--retries={retries}"]) == 1
    assert capsys.readouterr().err == "error: the connection ended before the copy did\n"


def test_the_exit_code_of_tar_is_kubectls(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nothing = (websocket.STDOUT, b"\0" * 10240)
    use(monkeypatch, Session((websocket.STDERR, b"tar: x: Cannot stat\n"), nothing, FAILURE))
    assert kubectl.main(["cp", "web:/x", str(tmp_path / "back")]) == 2
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("tar: x: Cannot stat\n", "command terminated with exit code 2\n")


def test_an_upload_arrives_as_an_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/data").write_bytes(b"d" * 700_000)
    upload = Session(SUCCESS)
    container = use(monkeypatch, Session(FAILURE), upload)
    assert kubectl.main(["cp", str(tmp_path / "there"), "web:/tmp/here"]) == 0
    assert container.commands == [["test", "-d", "/tmp/here"], ["tar", "-xmf", "-", "-C", "/tmp"]]
    with tarfile.open(fileobj=io.BytesIO(upload.stdin)) as tar:
        assert tar.getnames() == ["here", "here/data"]
        file = tar.extractfile("here/data")
        assert file is not None
        assert file.read() == b"d" * 700_000


def test_an_upload_that_the_container_refuses_says_what_its_tar_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "big").write_bytes(b"d" * 3_000_000)
    full = Session((websocket.STDERR, b"tar: No space left on device\n"), FAILURE, room=500_000)
    use(monkeypatch, Session(FAILURE), full)
    assert kubectl.main(["cp", str(tmp_path / "big"), "web:/tmp/big"]) == 2
    assert "tar: No space left on device" in capfd.readouterr().err
