"""`kubectl cp` from a container whose `tar` is the attacker's.

Vectors: CVE-2018-1002100 (`..`), CVE-2019-1002101 and CVE-2019-11246 (links), CVE-2019-11249 and CVE-2019-11251 (links
of links), devices, set-uid bits, archives that are none.
"""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from escape.images import entry

from pybernetes.kubectl import websocket
from pybernetes.kubectl.commands import cp
from pybernetes.kubectl.errors import CLIError

LINK, HARD = tarfile.SYMTYPE, tarfile.LNKTYPE


def archive(entries: list[tuple[Any, bytes]]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for info, data in entries:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def copy(monkeypatch: pytest.MonkeyPatch, content: bytes, source: str, target: Path) -> str:
    """What kubectl complained of."""
    told: list[str] = []
    flags = SimpleNamespace(on=lambda name: False, text=lambda name: "", number=lambda name: 0)
    context = SimpleNamespace(err=told.append, out=told.append, flags=flags)
    messages = iter([(websocket.STDOUT, content), (websocket.ERROR, b'{"status": "Success"}')])
    session = SimpleNamespace(close=lambda: None, receive=lambda: next(messages))
    monkeypatch.setattr(cp, "_session", lambda *_: session)
    try:
        cp._download(context, ("pod", source), str(target))  # type: ignore[arg-type]
    except CLIError as error:
        told.append(str(error))
    return "".join(told)


WAYS = {
    "up": [entry("data/../../outside/made", text="x")],
    "up_first": [entry("../outside/made", text="x")],
    "absolute": [entry("/../../../../../../..{outside}/made", text="x")],
    "link": [entry("data/way", LINK, "{outside}"), entry("data/way/made", text="x")],
    "link_to_a_file": [entry("data/own", LINK, "{outside}/secret"), entry("data/own", text="x")],
    "links_of_links": [
        entry("data/a", LINK, "."),
        entry("data/a/b", LINK, "../.."),
        entry("data/a/b/outside/made", text="x"),
    ],
    "hard_link": [entry("data/own", HARD, "../outside/secret"), entry("data/own", text="x")],
    "device": [entry("data/null", tarfile.CHRTYPE, devmajor=1, devminor=3), entry("data/pipe", tarfile.FIFOTYPE)],
    "the_folder_itself": [entry("data", LINK, "{outside}"), entry("data/made", text="x")],
    "nothing_in_between": [entry("data//../../outside//made", text="x")],
}


@pytest.mark.parametrize("source", ["/data", "/", "."])
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_written_outside_of_the_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str, source: str
) -> None:
    (outside := tmp_path / "outside").mkdir()
    (outside / "secret").write_text("own")
    (target := tmp_path / "target").mkdir()
    entries = []
    for info, data in WAYS[way]:
        changed = info.replace(name=info.name.replace("{outside}", str(outside)))
        changed.linkname = info.linkname.replace("{outside}", str(outside))
        entries.append((changed, data))
    copy(monkeypatch, archive(entries), source, target)
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_text() == "own"
    assert sorted(os.listdir(tmp_path)) == ["outside", "target"]
    assert all(each.is_dir() or each.is_file() for each in target.rglob("*"))
    assert not any(each.is_symlink() for each in target.rglob("*"))


def test_no_set_uid_bit_comes_along(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy(monkeypatch, archive([entry("data", text="x", mode=0o6777)]), "/data", tmp_path / "made")
    assert (tmp_path / "made").stat().st_mode & 0o7000 == 0


@pytest.mark.parametrize("content", [b"x" * 2048, b"\0" * 100, archive([entry("data", text="x" * 5000)])[:3000]])
def test_an_archive_that_is_none_is_an_error_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    assert copy(monkeypatch, content, "/data", tmp_path / "made")


def test_names_do_not_command_the_users_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = archive([entry("data/\x1b]0;title\x07\x1b[2J", LINK, "\x1b[31m"), entry("../\x1b[2J", text="x")])
    told = copy(monkeypatch, content, "/data", tmp_path)
    assert told
    assert "\x1b" not in told
