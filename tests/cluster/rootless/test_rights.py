"""What we may do here, the ranges of users we may have, and what is then not isolated."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pybernetes.cluster.rootless import namespaces
from pybernetes.cluster.rootless.rights import Rights, differences


@pytest.mark.parametrize(
    ("subuid", "expected"),
    [
        ("4711:100000:65536\n", (100000, 65536)),
        ("4711:1:10\n4711:100000:65536\nother:5:5\n", (100000, 65536)),
        ("other:100000:65536\n", None),
        ("", None),
        ("nonsense\n4711:7:8:9\n", None),
    ],
)
def test_the_largest_range_of_a_user_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, subuid: str, expected: tuple[int, int] | None
) -> None:
    monkeypatch.setattr(namespaces, "find", lambda name: f"/usr/bin/{name}")
    file = tmp_path / "subuid"
    file.write_text(subuid)
    found = namespaces.ranges(4711, subuid=str(file), subgid=str(file))
    assert (found and found.users) == expected
    assert namespaces.ranges(4711, subuid=str(file), subgid="/nowhere") is None


def test_without_the_programs_that_map_them_ranges_are_of_no_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(namespaces, "find", lambda name: None)
    (tmp_path / "subuid").write_text("4711:100000:65536\n")
    assert namespaces.ranges(4711, subuid=str(tmp_path / "subuid"), subgid=str(tmp_path / "subuid")) is None


def test_with_one_user_a_hint_says_how_to_have_more() -> None:
    assert differences(Rights("root"), 1) == []
    alone, several = (differences(Rights("user-namespaces"), users) for users in (1, 65537))
    assert set(several) < set(alone)
    assert "/etc/subuid" in alone[-1]
    assert (
        "(it is forbidden), so containers are plain processes" in differences(Rights("none", "it is forbidden"), 1)[0]
    )


# In a process of its own: gRPC starts its threads again in forks of one that has used it, as this one may have, and
# who has threads makes no user namespace.
AS_ROOT = """
import os
from pybernetes.cluster.rootless import namespaces

namespaces.as_root(lambda: print(os.getuid(), flush=True))
try:
    namespaces.as_root(lambda: os.unlink("missing"))
except OSError as error:
    print(error)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_belongs_to_others_is_removed_as_root_of_a_namespace(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-P", "-c", AS_ROOT], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("0\n[Errno 2] No such file or directory: 'missing'\n", "")
