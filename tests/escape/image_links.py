"""An image with links or pipes in the place of what the runtime makes or opens itself."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from escape.images import image
from escape.pods import Pod, confined
from node.machine import Machine

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

SWITCHES = (
    "head -c 1 /proc/kcore; echo x > /proc/sys/kernel/core_pattern; echo h > /proc/sysrq-trigger; cat /work/secret"
)


def leads_nowhere(machine: Machine, outside: Path, entries: Sequence[tuple[Any, bytes]]) -> None:
    """Starts a container of such an image; `{folder}` in a link stands for a folder of the node."""
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    outside.chmod(0o755)
    (outside / "secret").write_text("the node's own")
    for info, _ in entries:
        info.linkname = info.linkname.replace("{folder}", str(outside))
    name = image(machine, entries, WorkingDir="/work")
    volume = machine.folder / f"volume-{name.rpartition('/')[2].partition(':')[0]}"
    volume.mkdir()
    with Pod(machine) as pod:
        try:
            id = pod.sleeper(
                image=name,
                linux=confined(),
                tty=True,
                mounts=[cri.Mount(host_path=str(volume), container_path="/data")],
            )
            said = pod.sh(id, SWITCHES).text
        except CRIError as error:
            said = str(error)
    assert "the node's own" not in said
    assert sorted(each.name for each in outside.iterdir()) == ["secret"]
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
