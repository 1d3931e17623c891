"""A pod fills the files that every pod has: resolv.conf, hostname, hosts, and the file for its last words.

Vector: CVE-2020-8557 (/etc/hosts had no limit and did not count against ephemeral storage).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cri.embedded.machine import EmbeddedMachine
from escape.conftest import Inside
from escape.runtimes import ours

from pybernetes.client.clock import FakeClock
from pybernetes.kubelet.gc.written_files import KEPT, MOST, WrittenFiles, used

FILL = "head -c 20000000 /dev/zero > {path}; stat -c %s {path}"


@ours
@pytest.mark.parametrize("path", ["/etc/resolv.conf", "/etc/hostname", "/etc/hosts"])
def test_a_file_of_the_runtime_is_bounded(machine: EmbeddedMachine, inside: Inside, path: str) -> None:
    code, said = inside.sh(FILL.format(path=path))
    assert (code, int(said.split()[0]) <= 1 << 20) == (0, True), said
    assert "rror" in said
    assert inside.sh(f"echo short > {path} && cat {path}") == (0, "short\n"), "it can be written to again"


@pytest.mark.parametrize("name", ["etc-hosts", "containers/main/12345678"])
async def test_a_file_of_the_kubelet_keeps_its_end_and_gives_its_room_back(tmp_path: Path, name: str) -> None:
    path = tmp_path / "uid" / name
    path.parent.mkdir(parents=True)
    looking = WrittenFiles(folders=lambda: [tmp_path / "uid"], clock=FakeClock(0.0))
    with path.open("wb") as file:  # stays open, as in a container
        for number in range(5):
            file.write(b"x" * (4 * MOST) + b"last words %d" % number)
            file.flush()
            os.fsync(file.fileno())
            assert used(tmp_path / "uid").bytes >= MOST, "it counts"
            await looking.look()
            assert used(tmp_path / "uid").bytes <= 2 * KEPT
            assert path.read_bytes().endswith(b"last words %d" % number)


async def test_links_and_pipes_in_their_place_are_left_alone(tmp_path: Path) -> None:
    (secret := tmp_path / "secret").write_bytes(b"x" * (2 * MOST))
    folder = tmp_path / "uid" / "containers" / "main"
    folder.mkdir(parents=True)
    (folder / "1").symlink_to(secret)
    os.mkfifo(folder / "2")
    (tmp_path / "uid" / "etc-hosts").symlink_to(secret)
    await WrittenFiles(folders=lambda: [tmp_path / "uid"], clock=FakeClock(0.0)).look()
    assert secret.read_bytes() == b"x" * (2 * MOST)
