"""Volumes at or below /proc and /sys, so that what the runtime writes there goes elsewhere, or what it hides is shown.

Vectors: CVE-2019-16884 (a volume over /proc), CVE-2025-52881 (writes to /proc of a runtime are redirected),
CVE-2025-31133 (the mask of a file under a volume).
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from escape.pods import Pod, confined
from escape.runtimes import ours
from node.machine import Machine

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

pytestmark = ours
LOOK = (
    "head -c 64 /proc/kcore /proc/keys 2> /dev/null;"
    "for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger; do echo x > $f; done"
)


def trap(machine: Machine, **links: str) -> Path:
    """A volume whose files are links to switches of the kernel."""
    volume = Path(tempfile.mkdtemp(dir=machine.folder))
    volume.chmod(0o777)
    for name, target in links.items():
        place = volume / name.replace("__", "/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(target)
    return volume


SWITCH = "/proc/sysrq-trigger"
LINKS = dict.fromkeys(
    ("self__attr__exec", "self__uid_map", "self__setgroups", "self__oom_score_adj", "thread-self", "keys"), SWITCH
)


@pytest.mark.parametrize("place", ["/proc", "/proc/self", "/proc/self/attr", "/proc/sys", "/proc/1", "/sys", "/dev"])
def test_a_volume_there_neither_redirects_the_runtime_nor_shows_what_is_hidden(machine: Machine, place: str) -> None:
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    volume = trap(machine, null=SWITCH, ptmx=SWITCH, **LINKS)
    linux = confined()
    linux.security_context.run_as_user.value = 1000
    with Pod(machine) as pod:
        try:
            id = pod.sleeper(mounts=[cri.Mount(host_path=str(volume), container_path=place)], linux=linux)
            said = pod.sh(id, LOOK).text
        except CRIError as error:
            said = str(error)
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert "ELF" not in said
    assert "keyring" not in said
    assert all(each.is_symlink() or each.is_dir() for each in volume.rglob("*"))


def test_a_link_in_one_volume_does_not_bring_another_over_the_masks(machine: Machine) -> None:
    first, second = trap(machine, way="/proc"), trap(machine)
    (second / "core_pattern").touch()
    mounts = [
        cri.Mount(host_path=str(first), container_path="/data"),
        cri.Mount(host_path=str(second), container_path="/data/way/sys/kernel"),
    ]
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    with Pod(machine) as pod, pytest.raises(CRIError, match="inside /proc"):
        pod.sleeper(mounts=mounts)
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern


def test_what_tells_of_cpus_and_memory_may_be_a_file_of_its_own(machine: Machine) -> None:
    (volume := trap(machine)).joinpath("cpuinfo").write_text("one processor\n")
    mount = cri.Mount(host_path=str(volume / "cpuinfo"), container_path="/proc/cpuinfo")
    with Pod(machine) as pod:
        assert pod.sh(pod.sleeper(mounts=[mount]), "cat /proc/cpuinfo").text == "one processor\n"
