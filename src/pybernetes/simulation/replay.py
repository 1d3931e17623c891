"""`pyb replay FILE`: lets the controllers and the scheduler of today's code live through a recording (`pyb record`).

The input (requests of users, reports of nodes, foreign controllers) comes at the moments of the recording, in virtual
time. Shown is what is stored in the end and was not, or is otherwise; the exit code is 1 then. Options say what else to
try: another configuration of the scheduler, other flags of the controllers.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from pybernetes.cluster import certificates, recording
from pybernetes.cluster.cli import program
from pybernetes.cluster.commands import flags
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.recording import Recording, Replayed
from pybernetes.testing.options import ClusterOptions, OptionError, parse

WITHIN = 600.0
"""Seconds of the machine."""


def main(argv: list[str]) -> int:
    """Replays; 1 if anything would be different."""
    parser = flags.Parser(
        prog=f"{program()} replay", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--scheduler-config", default="", metavar="FILE", help="a KubeSchedulerConfiguration to try")
    more = "a flag of the controller manager to try, such as --controllers=*,-job; several times for several"
    parser.add_argument("--controller-manager-flag", action="append", default=[], metavar="FLAG", help=more)
    arguments = parser.parse_args(argv)
    chosen = {
        "nodes": 0,
        "scheduler_config": arguments.scheduler_config,
        "controller_manager_flags": tuple(arguments.controller_manager_flag),
    }
    try:
        made = recording.load(arguments.file)
        replayed = replay(arguments.file, parse(chosen))
    except (recording.RecordingError, OptionError, OSError) as error:
        raise ClusterError(str(error)) from None
    return _show(made, replayed)


def replay(file: Path, options: ClusterOptions) -> Replayed:
    """Replay the recording in a file. ClusterError."""
    with tempfile.TemporaryDirectory(prefix="pyb-replay-") as folder:
        pki = Path(folder) / "pki"
        pki.mkdir()
        certificates.ensure(pki, ["10.96.0.1"])
        argv = [sys.executable, "-P", "-m", "pybernetes.simulation.replay_process", str(file), folder]
        try:
            done = subprocess.run(
                [*argv, msgspec.json.encode(options).decode()], capture_output=True, timeout=WITHIN, check=False
            )
        except subprocess.TimeoutExpired:
            raise ClusterError(f"the replay has not ended within {WITHIN:.0f} s") from None
        result = Path(folder) / "result"
        if done.returncode or not result.exists():
            raise ClusterError(f"the replay failed: {done.stderr.decode(errors='replace').strip()[-2000:]}")
        return msgspec.json.decode(result.read_bytes(), type=Replayed)


def _show(made: Recording, replayed: Replayed) -> int:
    print(f"{len(made.changes)} changes in {made.end - made.begin:.0f} s")
    print(f"decisions then: {recording.counts(made.changes)}")
    print(f"decisions now:  {recording.counts(replayed.changes)}")
    if replayed.skipped:
        print(f"{replayed.skipped} reports were left out: what they are about is not there now")
    found = list(recording.differences(made, replayed))
    print("\n".join(found) if found else "Nothing would be different.")
    return 1 if found else 0
