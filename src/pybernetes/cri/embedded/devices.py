"""Which devices the processes of a cgroup v2 may make, read and write: a BPF program, where v1 has a file of rules.

Without it a container that may make device nodes (MKNOD is a default capability) could make the node's disk.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterable
from pathlib import Path

from pybernetes.cri.errors import CRIError

_BPF = {"x86_64": 321, "aarch64": 280}  # the number of bpf(2)
_PROG_LOAD, _PROG_ATTACH = 5, 8
_CGROUP_DEVICE_PROGRAM, _CGROUP_DEVICE = 15, 6
_ALLOW_MULTI = 2
_KINDS = {"b": 1, "c": 2}
_ACCESS = {"m": 1, "r": 2, "w": 4}

# Registers: 1 = what the program is given (access and kind, major, minor), 2-5 = those four, 6 = for use.
_LOAD, _COPY, _SET, _AND, _SHIFT, _UNEQUAL, _EXIT = 0x61, 0xBF, 0xB7, 0x57, 0x77, 0x55, 0x95


def confine(cgroup: Path, rules: Iterable[str]) -> None:
    """Lets a cgroup's processes use only devices of rules (`c 1:3 rwm`, `b *:* m`), for as long as it exists."""
    code = program(rules)
    try:
        loaded = _load(code)
        try:
            _attach(cgroup, loaded)
        finally:
            os.close(loaded)
    except OSError as error:
        raise CRIError("Unknown", f"failed to confine the devices of cgroup {cgroup}: {error.strerror}") from None


def program(rules: Iterable[str]) -> bytes:
    """The program: allows what a rule allows in full. ValueError for what is no rule."""
    code = [
        _instruction(_LOAD, 2, 1, 0),
        _instruction(_COPY, 3, 2),
        _instruction(_AND, 3, value=0xFFFF),  # 3: the kind
        _instruction(_SHIFT, 2, value=16),  # 2: the access
        _instruction(_LOAD, 4, 1, 4),  # 4: major
        _instruction(_LOAD, 5, 1, 8),  # 5: minor
    ]
    for rule in rules:
        code += _rule(rule)
    code += [_instruction(_SET, 0, value=0), _instruction(_EXIT)]
    return b"".join(code)


def _rule(rule: str) -> list[bytes]:
    kind, _, rest = rule.partition(" ")
    numbers, _, access = rest.partition(" ")
    major, _, minor = numbers.partition(":")
    if kind not in _KINDS or not access or not set(access) <= _ACCESS.keys():
        raise ValueError(f"not a rule for devices: {rule!r}")
    refused = 7 & ~sum(_ACCESS[each] for each in set(access))
    # Each test is a register and what it must be; the ends of all of them are the same.
    tests: list[tuple[list[bytes], int, int]] = [([], 3, _KINDS[kind])]
    if refused:
        tests.append(([_instruction(_COPY, 6, 2), _instruction(_AND, 6, value=refused)], 6, 0))
    tests += [([], register, int(text)) for register, text in ((4, major), (5, minor)) if text != "*"]
    code = [_instruction(_SET, 0, value=1), _instruction(_EXIT)]
    for before, register, wanted in reversed(tests):
        code = [*before, _instruction(_UNEQUAL, register, distance=len(code), value=wanted), *code]
    return code


def _instruction(code: int, to: int = 0, by: int = 0, distance: int = 0, value: int = 0) -> bytes:
    return struct.pack("<BBhi", code, to | by << 4, distance, value)


def _load(code: bytes) -> int:
    text, license = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    attributes = struct.pack(
        "<IIQQIIQII",
        *(_CGROUP_DEVICE_PROGRAM, len(code) // 8, ctypes.addressof(text), ctypes.addressof(license)),
        *(0, 0, 0, 0, 0),
    )
    return _bpf(_PROG_LOAD, attributes)


def _attach(cgroup: Path, loaded: int) -> None:
    folder = os.open(cgroup, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        _bpf(_PROG_ATTACH, struct.pack("<IIII", folder, loaded, _CGROUP_DEVICE, _ALLOW_MULTI))
    finally:
        os.close(folder)


def _bpf(command: int, attributes: bytes) -> int:
    number = _BPF[os.uname().machine]
    libc = ctypes.CDLL(None, use_errno=True)
    given = ctypes.create_string_buffer(attributes, len(attributes))
    result = libc.syscall(ctypes.c_long(number), ctypes.c_long(command), given, ctypes.c_long(len(attributes)))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)
