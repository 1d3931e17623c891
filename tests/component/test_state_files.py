"""Files that survive a crash, and what happens to those that cannot be read."""

import errno
import json
import logging
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pybernetes.component import state_files


def test_a_file_is_replaced_as_a_whole_and_durably(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    fsync, rename = os.fsync, os.rename

    def watched_fsync(descriptor: int) -> None:
        calls.append(f"fsync {Path(os.readlink(f'/proc/self/fd/{descriptor}')).name.split('.')[0] or 'file'}")
        fsync(descriptor)

    def watched_rename(source: Path, target: Path) -> None:
        calls.append("rename")
        rename(source, target)

    monkeypatch.setattr(os, "fsync", watched_fsync)
    monkeypatch.setattr(os, "rename", watched_rename)
    path = tmp_path / "folder" / "state"
    state_files.write(path, b"one")
    assert path.read_bytes() == b"one"
    assert path.stat().st_mode & 0o777 == 0o600
    assert calls == ["fsync file", "rename", "fsync folder"]
    state_files.write(path, b"two", mode=0o644)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(path.parent) == ["state"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    state_files.write(path, b"one")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        state_files.write(path, b"two")
    assert path.read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["state"]


def test_a_file_that_cannot_be_decoded_is_set_aside_with_an_error_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "state"
    assert state_files.read(path, json.loads) is None
    path.write_bytes(b'{"a": 1}')
    assert state_files.read(path, json.loads) == {"a": 1}
    with caplog.at_level(logging.ERROR):
        for number in range(state_files.KEPT + 2):
            path.write_bytes(b'{"a": ' + str(number).encode())
            assert state_files.read(path, json.loads) is None
    assert not path.exists()
    assert sorted(os.listdir(tmp_path)) == [f"state.unreadable-{number}" for number in range(1, state_files.KEPT + 1)]
    assert f"{path} cannot be read and is set aside as state.unreadable-1" in caplog.text


@pytest.mark.parametrize(
    "make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to(path)], ids=["folder", "pipe", "loop"]
)
def test_what_is_no_file_is_set_aside_too(tmp_path: Path, make: Callable[[Path], None]) -> None:
    path = tmp_path / "state"
    for _ in range(state_files.KEPT + 2):
        make(path)
        if path.is_dir():
            (path / "file").touch()
        assert state_files.read(path, json.loads) is None
        assert not os.path.lexists(path)
    assert sorted(os.listdir(tmp_path)) == [f"state.unreadable-{number}" for number in range(1, state_files.KEPT + 1)]
