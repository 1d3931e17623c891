"""The CPU assignments, in the file `cpu_manager_state`: upstream's form and checksum, so that both can read it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

import msgspec

from pybernetes.component import state_files

from ..checkpoints import CorruptCheckpoint, checksum, go_map
from .cpuset import CPUs, format_cpus, parse_cpus

STATE_FILE: Final = "cpu_manager_state"
log = logging.getLogger(__name__)


class _File(msgspec.Struct, rename="camel", kw_only=True):
    policy_name: str
    default_cpu_set: str
    entries: dict[str, dict[str, str]] | msgspec.UnsetType = msgspec.UNSET
    checksum: int


class CPUState:
    """CPUs that all share (the default set), and those that containers have alone."""

    def __init__(self, root: Path, policy: str) -> None:
        """`CorruptCheckpoint` if the file is of another policy: drain the node, remove it.

        One that cannot be read is set aside: containers get CPUs anew when their pods are admitted.
        """
        self._path, self._policy = root / STATE_FILE, policy
        self.shared: CPUs = frozenset()
        self.assignments: dict[str, dict[str, CPUs]] = {}
        """By the pod's uid and the container's name."""
        self._load()

    def assign(self, uid: str, container: str, cpus: CPUs) -> None:
        """Give CPUs to a container alone."""
        self.assignments.setdefault(uid, {})[container] = cpus
        self.shared -= cpus
        self.save()

    def release(self, uid: str) -> None:
        """Take back all CPUs of a pod."""
        for cpus in self.assignments.pop(uid, {}).values():
            self.shared |= cpus
        self.save()

    def save(self) -> None:
        """Write it down; a disk that takes nothing is logged, and the next change tries again."""
        entries = {
            uid: {name: format_cpus(cpus) for name, cpus in sorted(containers.items())}
            for uid, containers in sorted(self.assignments.items())
        }
        shared = format_cpus(self.shared)
        content = _File(
            policy_name=self._policy,
            default_cpu_set=shared,
            entries=entries or msgspec.UNSET,
            checksum=_checksum(self._policy, shared, entries),
        )
        try:
            state_files.write(self._path, msgspec.json.encode(content))
        except OSError as error:
            log.error("failed to store state to checkpoint %s: %s", self._path, error)

    def _load(self) -> None:
        found = state_files.read(self._path, _decode)
        if found is None:
            return
        policy, self.shared, self.assignments = found
        if policy != self._policy:
            raise CorruptCheckpoint(
                f'configured policy "{self._policy}" differs from state checkpoint policy "{policy}"'
            )


def _decode(content: bytes) -> tuple[str, CPUs, dict[str, dict[str, CPUs]]]:
    """Policy, default set and assignments."""
    # Go reads names of fields whatever their case, and older files have another one.
    found = msgspec.json.decode(content.replace(b'"defaultCPUSet"', b'"defaultCpuSet"'), type=_File)
    entries = found.entries or {}
    sums = {_checksum(found.policy_name, found.default_cpu_set, entries)}
    if not entries:  # of the first version of the format, which is the same while it is empty
        sums.add(_checksum(found.policy_name, found.default_cpu_set, {}, "map[string]string"))
    if found.checksum and found.checksum not in sums:
        raise CorruptCheckpoint("could not restore state from checkpoint: checkpoint is corrupted")
    assignments = {
        uid: {name: parse_cpus(text) for name, text in containers.items()} for uid, containers in entries.items()
    }
    return found.policy_name, parse_cpus(found.default_cpu_set), assignments


def _checksum(
    policy: str, shared: str, entries: dict[str, dict[str, str]], kind: str = "map[string]map[string]string"
) -> int:
    """Of the struct as Go prints it."""
    shown = go_map({uid: go_map(containers) for uid, containers in entries.items()})
    return checksum(
        f"(*state.CPUManagerCheckpoint){{PolicyName:(string){policy} DefaultCPUSet:(string){shared} "
        f"Entries:({kind}){shown} Checksum:(checksum.Checksum)0}}"
    )
