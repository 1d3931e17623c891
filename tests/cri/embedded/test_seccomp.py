"""Filters of system calls: what they answer (by an interpreter of BPF), and that the kernel takes them."""

from __future__ import annotations

import errno
import json
import os
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.cri import capabilities
from pybernetes.cri import v1 as cri
from pybernetes.cri.embedded import bpf, seccomp
from pybernetes.cri.embedded.bpf import Condition, Rule, Table
from pybernetes.cri.embedded.seccomp import ENOSYS, EPERM, ProfileError
from pybernetes.cri.errors import CRIError

ALL = (1 << 41) - 1
DEFAULT = capabilities.mask(capabilities.DEFAULT, ALL)


def answer(program: bytes, number: int, *arguments: int, architecture: str = "x86_64") -> int:
    """What a program says to a call."""
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, seccomp.ARCHITECTURES[architecture], 0, *padded)
    code = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    at = accumulator = 0
    while True:
        operation, true, false, k = code[at]
        at += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("<I", data, k)[0]
        elif operation == 0x54:
            accumulator &= k
        elif operation == 0x05:
            at += k
        elif operation == 0x06:
            return int(k)
        else:
            holds = {0x15: accumulator == k, 0x25: accumulator > k, 0x35: accumulator >= k}[operation]
            at += true if holds else false


def runtime_default(call: str, *arguments: int, granted: int = DEFAULT, architecture: str = "x86_64") -> int:
    machine = "aarch64" if architecture == "aarch64" else "x86_64"
    number = seccomp.numbers(architecture)[call]
    program = seccomp.runtime_default(granted, machine)
    return answer(program, number, *arguments, architecture=architecture)


@pytest.mark.parametrize("architecture", ["x86_64", "i386", "aarch64"])
def test_runtime_default_withholds_what_is_named_and_allows_the_rest(architecture: str) -> None:
    withheld = {call for calls in seccomp.BY_CAPABILITY.values() for call in calls.split()} - {"chroot", "clone3"}
    withheld |= set(seccomp.NEVER.split())
    special = {"clone3", "personality"}
    for call in seccomp.numbers(architecture).keys() - special:
        expected = EPERM if call in withheld else bpf.ALLOW
        assert runtime_default(call, architecture=architecture) == expected, call


@pytest.mark.parametrize(
    ("call", "arguments", "expected"),
    [
        ("clone", [0x3D0F00], bpf.ALLOW),  # a thread
        ("clone", [0x10000000], EPERM),  # a user namespace
        ("clone", [0x20000 | 17], EPERM),
        ("clone", [0x02000000 | 17], EPERM),
        ("clone3", [], ENOSYS),
        ("unshare", [0x10000000], EPERM),
        ("setns", [], EPERM),
        ("mount", [], EPERM),
        ("pivot_root", [], EPERM),
        ("keyctl", [], EPERM),
        ("io_uring_setup", [], EPERM),
        ("personality", [0], bpf.ALLOW),
        ("personality", [0xFFFFFFFF], bpf.ALLOW),
        ("personality", [0x40000], EPERM),  # ADDR_NO_RANDOMIZE
        ("socket", [2], bpf.ALLOW),
        ("socket", [40], EPERM),
        ("ptrace", [], bpf.ALLOW),
        ("chroot", [], bpf.ALLOW),
    ],
)
def test_runtime_default_looks_at_arguments(call: str, arguments: list[int], expected: int) -> None:
    assert runtime_default(call, *arguments) == expected


def test_capabilities_give_calls_back() -> None:
    admin = DEFAULT | capabilities.mask(["SYS_ADMIN"], ALL)
    for call in ("mount", "unshare", "setns", "clone3", "bpf"):
        assert runtime_default(call, granted=admin) == bpf.ALLOW
    assert runtime_default("clone", 0x20000, granted=admin) == bpf.ALLOW
    assert runtime_default("pivot_root", granted=admin) == EPERM
    assert runtime_default("reboot", granted=admin) == EPERM
    assert runtime_default("chroot", granted=0) == EPERM
    assert runtime_default("settimeofday", granted=capabilities.mask(["SYS_TIME"], ALL)) == bpf.ALLOW


def test_calls_that_are_newer_than_the_table_do_not_exist() -> None:
    program = seccomp.runtime_default(DEFAULT, "x86_64")
    for number in (max(seccomp.numbers("x86_64").values()) + 1, 5000, seccomp.X32, seccomp.X32 | 165):
        assert answer(program, number) == ENOSYS


def test_a_mode_of_the_processor_without_a_table_ends_the_process() -> None:
    program = seccomp.localhost(b'{"defaultAction": "SCMP_ACT_ALLOW"}', "x86_64")
    assert answer(program, 0) == bpf.ALLOW
    assert answer(program, 0, architecture="i386") == bpf.KILL_PROCESS


HOLDS = {
    "EQ": lambda a, v, _: a == v,
    "NE": lambda a, v, _: a != v,
    "LT": lambda a, v, _: a < v,
    "LE": lambda a, v, _: a <= v,
    "GT": lambda a, v, _: a > v,
    "GE": lambda a, v, _: a >= v,
    "MASKED_EQ": lambda a, v, w: a & v == w,
}
EDGES = st.sampled_from([0, 1, 2, 0xFFFFFFFE, 0xFFFFFFFF, 1 << 32, (1 << 32) + 1, 1 << 63, (1 << 64) - 1])
VALUES = EDGES | st.integers(0, (1 << 64) - 1)


@given(st.sampled_from(sorted(HOLDS)), VALUES, VALUES, VALUES, st.integers(0, 5))
def test_conditions_compare_64_bits(operator: str, argument: int, value: int, second: int, index: int) -> None:
    rules = {7: [Rule((Condition(index, operator, value, second),), bpf.LOG)]}
    program = bpf.program([Table(seccomp.ARCHITECTURES["x86_64"], rules, bpf.ALLOW, 500, ENOSYS)])
    arguments = [0] * 6
    arguments[index] = argument
    expected = bpf.LOG if HOLDS[operator](argument, value, second) else bpf.ALLOW
    assert answer(program, 7, *arguments) == expected


@given(st.dictionaries(st.integers(0, 499), st.integers(1, 40), max_size=300), st.integers(0, 520))
def test_every_number_finds_its_answer(answers: dict[int, int], number: int) -> None:
    rules = {each: [Rule((), bpf.ERRNO | code)] for each, code in answers.items()}
    program = bpf.program([Table(seccomp.ARCHITECTURES["x86_64"], rules, bpf.ALLOW, 500, ENOSYS)])
    expected = ENOSYS if number >= 500 else bpf.ERRNO | answers[number] if number in answers else bpf.ALLOW
    assert answer(program, number) == expected


# -- profiles of the node


def localhost(profile: Any) -> bytes:
    return seccomp.localhost(json.dumps(profile).encode(), "x86_64")


def test_a_profile_allows_what_it_names() -> None:
    program = localhost(
        {
            "defaultAction": "SCMP_ACT_ERRNO",
            "defaultErrnoRet": errno.EACCES,
            "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32", "SCMP_ARCH_MIPS"],
            "syscalls": [
                {"names": ["read", "openat2", "no_such_call"], "action": "SCMP_ACT_ALLOW"},
                {"names": ["write"], "action": "SCMP_ACT_ERRNO", "errnoRet": 99},
                {
                    "names": ["kill"],
                    "action": "SCMP_ACT_ALLOW",
                    "args": [
                        {"index": 0, "value": 1, "op": "SCMP_CMP_EQ"},
                        {"index": 1, "value": 9, "op": "SCMP_CMP_NE"},
                    ],
                },
                {
                    "names": ["socket"],
                    "action": "SCMP_ACT_ALLOW",
                    "args": [
                        {"index": 0, "value": 1, "op": "SCMP_CMP_EQ"},
                        {"index": 0, "value": 2, "op": "SCMP_CMP_EQ"},
                    ],
                },
            ],
        }
    )
    number = seccomp.numbers("x86_64")
    denied = bpf.ERRNO | errno.EACCES
    assert answer(program, number["read"]) == bpf.ALLOW
    assert answer(program, seccomp.numbers("i386")["read"], architecture="i386") == bpf.ALLOW
    assert answer(program, number["write"]) == bpf.ERRNO | 99
    assert answer(program, number["open"]) == denied
    assert [answer(program, number["kill"], *each) for each in ((1, 15), (1, 9), (2, 15))] == [
        bpf.ALLOW,
        denied,
        denied,
    ]
    assert [answer(program, number["socket"], each) for each in (1, 2, 3)] == [bpf.ALLOW, bpf.ALLOW, denied]
    assert answer(program, number["openat2"] + 1) == ENOSYS  # newer than anything that the profile names


@pytest.mark.parametrize(
    ("profile", "message"),
    [
        ([], "it must be a JSON object"),
        ({}, "defaultAction: unknown action null"),
        ({"defaultAction": "ALLOW"}, 'defaultAction: unknown action "ALLOW"'),
        ({"defaultAction": "SCMP_ACT_NOTIFY"}, "SCMP_ACT_NOTIFY is not supported"),
        ({"defaultAction": "SCMP_ACT_ALLOW", "defaultErrnoRet": 1}, "SCMP_ACT_ALLOW has no errnoRet"),
        ({"defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": -1}, "errnoRet must be a number"),
        ({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": {}}, "syscalls must be a list of objects"),
        ({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"action": "SCMP_ACT_LOG"}]}, r"syscalls\[0\]\.names"),
        ({"defaultAction": "SCMP_ACT_ALLOW", "listenerPath": "/x"}, "listenerPath is not supported"),
        (
            {
                "defaultAction": "SCMP_ACT_ALLOW",
                "syscalls": [{"names": ["read"], "action": "SCMP_ACT_LOG", "args": [{"op": "EQUALS"}]}],
            },
            r'syscalls\[0\]\.args\[0\]\.op: unknown operator "EQUALS"',
        ),
    ],
)
def test_a_broken_profile_is_refused_with_the_place(profile: Any, message: str) -> None:
    with pytest.raises(ProfileError, match=message):
        localhost(profile)


@pytest.mark.parametrize("context", [{}, {"privileged": True, "seccomp": {"profile_type": 0}}])
def test_unset_or_privileged_is_unconfined(context: dict[str, Any]) -> None:
    assert seccomp.filter_of(cri.LinuxContainerSecurityContext(**context), DEFAULT) == b""


def test_a_missing_profile_is_reported_by_its_path(tmp_path: Path) -> None:
    context = cri.LinuxContainerSecurityContext(seccomp={"profile_type": 2, "localhost_ref": f"{tmp_path}/none.json"})
    with pytest.raises(CRIError, match=r'seccomp profile "/.*/none.json": no such file or directory'):
        seccomp.filter_of(context, DEFAULT)


# -- the kernel

CONFINED = """
import ctypes, os, sys
from pybernetes.cri.embedded import syscalls
syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
syscalls.seccomp(bytes.fromhex(sys.argv[1]))
libc = ctypes.CDLL(None, use_errno=True)
for call in (lambda: libc.unshare(0x10000000), lambda: libc.mount(b"none", b"/none", b"tmpfs", 0, None)):
    print(call(), ctypes.get_errno())
print(os.fork() == 0 and os._exit(0) or os.waitstatus_to_exitcode(os.wait()[1]))
import threading
thread = threading.Thread(target=print, args=("thread",))
thread.start()
thread.join()
"""


@pytest.mark.skipif(os.uname().machine not in seccomp.OF_MACHINE, reason="no table of system calls")
def test_the_kernel_takes_it() -> None:
    program = seccomp.runtime_default(DEFAULT, os.uname().machine).hex()
    done = subprocess.run([sys.executable, "-c", CONFINED, program], capture_output=True, text=True, timeout=30)
    assert (done.stdout.split("\n"), done.stderr) == (["-1 1", "-1 1", "0", "thread", ""], "")
