"""System calls that change or read the kernel itself: modules, kexec, swap, the clock, inodes by number.

Vectors: container escapes by module loading, `open_by_handle_at` (the "shocker" of 2014), `kexec_load`, `iopl`,
`bpf`, `perf_event_open`, `setns` into the node, `process_vm_readv`. Tried without a seccomp filter: capabilities hold.
"""

from __future__ import annotations

import os

import pytest
from escape.conftest import Scripted

CALLS = {
    "init_module": ((175, 105), "0, 0, b''"),
    "finit_module": ((313, 273), "os.open('/etc/passwd', 0), b'', 0"),
    "delete_module": ((176, 106), "b'x', 0"),
    "kexec_load": ((246, 104), "0, 0, 0, 0"),
    "reboot": ((169, 142), "0xfee1dead, 672274793, 0x89abcdef, 0"),
    "swapon": ((167, 224), "b'/tmp', 0"),
    "settimeofday": ((164, 170), "b'\\0' * 16, 0"),
    "sethostname": ((170, 161), "b'x', 1"),
    "acct": ((163, 89), "b'/tmp/accounts'"),
    "quotactl": ((179, 60), "0, b'/dev/vda', 0, 0"),
    "open_by_handle_at": ((304, 265), "os.open('/', 0), b'\\x08\\0\\0\\0\\1\\0\\0\\0\\2\\0\\0\\0\\0\\0\\0\\0', 0"),
    "perf_event_open": ((298, 241), "b'\\1\\0\\0\\0' + (128).to_bytes(4, 'little') + bytes(120), -1, 0, -1, 0"),
    "setns": ((308, 268), "os.open('/proc/1/ns/mnt', 0), 0x20000"),
    "unshare": ((272, 97), "0x20000"),
    "pivot_root": ((155, 41), "b'/tmp', b'/tmp'"),
    "mount_setattr": ((442, 442), "-100, b'/sys', 0x8000, (b'\\0' * 8) + b'\\1' + (b'\\0' * 23), 32"),
    "fsopen": ((430, 430), "b'tmpfs', 0"),
    "vhangup": ((153, 58), ""),
    "syslog_clear": ((103, 116), "5, 0, 0"),
}


OTHERWISE = ("quotactl", "open_by_handle_at", "delete_module", "setns")
"""Calls whose words are judged before the right to make them."""


@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_changes_the_node_is_refused(scripted: Scripted, name: str) -> None:
    numbers, words = CALLS[name]
    number = numbers[os.uname().machine == "aarch64"]
    code, said = scripted.run(f"print(call({number}, {words}))")
    assert code == 0, said
    allowed = {"EPERM", "EACCES", "ENOSYS", "ENODEV", "EOPNOTSUPP"}
    assert said.strip() in allowed | ({"ENOENT", "EINVAL"} if name in OTHERWISE else set()), said
