"""The usual filter of calls (RuntimeDefault), and ways around it: other tables of calls, profiles that are not there.

Vectors: the x32 and the 32-bit table of x86, CVE-2023-2431 (a profile of the node with an empty name was none),
`io_uring`, user namespaces and keyrings, which take a filter to be kept away.
"""

from __future__ import annotations

import os

import pytest
from escape.pods import SYSTEM_CALL, Pod, confined
from escape.runtimes import ours
from node.machine import Machine

from pybernetes.cri import v1 as cri
from pybernetes.cri.errors import CRIError

CALLS = {
    "unshare": "272, 0x10000000",
    "clone": "56, 0x10000000 | 17, 0, 0, 0, 0",
    "mount": "165, b'none', b'/tmp', b'tmpfs', 0, 0",
    "bpf": "321, 0, b'\\0' * 72, 72",
    "keyctl": "250, 0, -3, 0",
    "add_key": "248, b'user', b'a', b'b', 1, -3",
    "perf_event_open": "298, b'\\0' * 128, 0, -1, -1, 0",
    "userfaultfd": "323, 0",
    "kexec_load": "246, 0, 0, 0, 0",
    "open_by_handle_at": "304, 3, b'\\0' * 32, 0",
    "x32_unshare": "0x40000000 + 272, 0x10000000",
    "x32_mount": "0x40000000 + 165, b'none', b'/tmp', b'tmpfs', 0, 0",
}
pytestmark = pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of x86-64")


def usual(profile: int = 0, path: str = "") -> object:
    linux = confined()
    linux.security_context.seccomp.profile_type = profile
    linux.security_context.seccomp.localhost_ref = path
    return linux


@ours
def test_calls_that_no_ordinary_program_makes_are_refused(machine: Machine) -> None:
    program = "".join(f"print({name!r}, call({words}), flush=True)\n" for name, words in CALLS.items())
    with Pod(machine) as pod:
        answer = pod.python(pod.python_sleeper(linux=usual()), SYSTEM_CALL + program)
    assert answer.code == 0, answer
    found = dict(line.split() for line in answer.text.splitlines())
    assert found.keys() == CALLS.keys()
    assert set(found.values()) <= {"EPERM", "ENOSYS"}, found


@ours
@pytest.mark.parametrize("path", ["", " ", "/", "none.json", "../none.json"])
def test_a_profile_that_is_not_there_is_not_left_out(machine: Machine, path: str) -> None:
    with Pod(machine) as pod, pytest.raises(CRIError):
        pod.sleeper(linux=usual(cri.SecurityProfile.Localhost, path))
