"""Who has which CPUs, in the file `cpu_manager_state`: upstream's form and checksum, so that both can read it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from ..checkpoints import CorruptCheckpoint, checksum, go_map, write_file
from .cpuset import CPUs, format_cpus, parse_cpus

STATE_FILE: Final = "cpu_manager_state"


class _File(msgspec.Struct, rename="camel", kw_only=True):
    policy_name: str
    default_cpu_set: str
    entries: dict[str, dict[str, str]] | msgspec.UnsetType = msgspec.UNSET
    checksum: int


class CPUState:
    """CPUs that all share (the default set), and those that containers have alone."""

    def __init__(self, root: Path, policy: str) -> None:
        """`CorruptCheckpoint` if the file is of another policy, or not to be trusted: drain the node, remove it."""
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
        """Write it down."""
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
        write_file(self._path, msgspec.json.encode(content))

    def _load(self) -> None:
        try:
            blob = self._path.read_bytes()
        except FileNotFoundError:
            return
        # Go reads names of fields whatever their case, and older files have another one.
        try:
            found = msgspec.json.decode(blob.replace(b'"defaultCPUSet"', b'"defaultCpuSet"'), type=_File)
        except msgspec.MsgspecError as error:
            raise CorruptCheckpoint(f"could not restore state from checkpoint: {error}") from error
        entries = found.entries or {}
        sums = {_checksum(found.policy_name, found.default_cpu_set, entries)}
        if not entries:  # of the first version of the format, which is the same while it is empty
            sums.add(_checksum(found.policy_name, found.default_cpu_set, {}, "map[string]string"))
        if found.checksum and found.checksum not in sums:
            raise CorruptCheckpoint("could not restore state from checkpoint: checkpoint is corrupted")
        if found.policy_name != self._policy:
            raise CorruptCheckpoint(
                f'configured policy "{self._policy}" differs from state checkpoint policy "{found.policy_name}"'
            )
        try:
            self.shared = parse_cpus(found.default_cpu_set)
        except ValueError as error:
            raise CorruptCheckpoint(f'could not parse default cpu set "{found.default_cpu_set}": {error}') from error
        for uid, containers in entries.items():
            for name, text in containers.items():
                try:
                    self.assignments.setdefault(uid, {})[name] = parse_cpus(text)
                except ValueError as error:
                    message = f'could not parse cpuset "{text}" for container "{name}" in pod "{uid}": {error}'
                    raise CorruptCheckpoint(message) from error


def _checksum(
    policy: str, shared: str, entries: dict[str, dict[str, str]], kind: str = "map[string]map[string]string"
) -> int:
    """Of the struct as Go prints it."""
    shown = go_map({uid: go_map(containers) for uid, containers in entries.items()})
    return checksum(
        f"(*state.CPUManagerCheckpoint){{PolicyName:(string){policy} DefaultCPUSet:(string){shared} "
        f"Entries:({kind}){shown} Checksum:(checksum.Checksum)0}}"
    )
