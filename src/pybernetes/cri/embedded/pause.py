"""The pause program: PID 1 of a pod's sandbox, as a static ELF file of a few hundred bytes.

It blocks INT, TERM and CHLD and waits for them: CHLD means that orphans of a pod with a shared PID namespace are to be
reaped (as are, at the beginning, those that ended before), INT and TERM end it. No handler is needed, because a blocked
signal waits even for a PID 1 that has no handler for it. Written as machine code because a machine without a compiler
has to have it, and the smallest process is the cheapest: one page of memory.
"""

from __future__ import annotations

import struct

_BASE = 0x400000
_HEADERS = 64 + 56
_SIGNALS = 1 << (2 - 1) | 1 << (15 - 1) | 1 << (17 - 1)  # INT, TERM, CHLD: the same numbers on both processors
_MACHINES = {"amd64": 62, "arm64": 183}


def program(architecture: str) -> bytes:
    """The executable for `amd64` or `arm64`; ValueError for others."""
    if architecture == "amd64":
        code = _amd64()
    elif architecture == "arm64":
        code = _arm64()
    else:
        raise ValueError(f"there is no pause program for {architecture} yet, only for {' and '.join(_MACHINES)}")
    size = _HEADERS + len(code)
    identity = b"\x7fELF\x02\x01\x01" + bytes(9)  # 64 bits, little endian
    header = struct.pack(
        "<HHIQQQIHHHHHH", 2, _MACHINES[architecture], 1, _BASE + _HEADERS, 64, 0, 0, 64, 56, 1, 0, 0, 0
    )
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)  # one, readable and executable
    return identity + header + segment + code


def _amd64() -> bytes:
    begin = (
        b"\x68" + struct.pack("<I", _SIGNALS)  # push the set of signals
        + b"\xb8\x0e\0\0\0"  # mov eax, rt_sigprocmask
        b"\x31\xff"  # xor edi, edi: SIG_BLOCK
        b"\x48\x89\xe6"  # mov rsi, rsp: the set
        b"\x31\xd2"  # xor edx, edx
        b"\x41\xba\x08\0\0\0"  # mov r10d, 8: its size
        b"\x0f\x05"  # syscall
    )  # fmt: skip
    wait = (
        b"\xb8\x80\0\0\0"  # mov eax, rt_sigtimedwait
        b"\x48\x89\xe7"  # mov rdi, rsp
        b"\x31\xf6"  # xor esi, esi
        b"\x31\xd2"  # xor edx, edx: for ever
        b"\x41\xba\x08\0\0\0"  # mov r10d, 8
        b"\x0f\x05"  # syscall
    )
    end = b"\xb8\x3c\0\0\0\x31\xff\x0f\x05"  # exit(0)
    reap = (
        b"\xb8\x3d\0\0\0"  # mov eax, wait4
        b"\x48\xc7\xc7\xff\xff\xff\xff"  # mov rdi, -1: any child
        b"\x31\xf6"  # xor esi, esi
        b"\xba\x01\0\0\0"  # mov edx, WNOHANG
        b"\x45\x31\xd2"  # xor r10d, r10d
        b"\x0f\x05"  # syscall
        b"\x85\xc0"  # test eax, eax
    )
    # After the wait: CHLD reaps, INT and TERM end, anything else (an interruption) waits again. 15 bytes.
    decide = (
        b"\x83\xf8\x11\x74" + _short(5 + 5 + len(end))  # cmp eax, CHLD; je reap
        + b"\x83\xf8\x02\x74" + _short(5)  # cmp eax, INT; je end
        + b"\x83\xf8\x0f\x75" + _short(-(len(wait) + 15))  # cmp eax, TERM; jne wait
    )  # fmt: skip
    first = b"\xeb" + _short(len(wait) + len(decide) + len(end))  # jmp reap
    again = b"\x7f" + _short(-(len(reap) + 2))  # jg reap
    back = len(wait) + len(decide) + len(end) + len(reap) + len(again) + 2
    return begin + first + wait + decide + end + reap + again + b"\xeb" + _short(-back)


def _short(distance: int) -> bytes:
    return struct.pack("<b", distance)


def _arm64() -> bytes:
    words = [
        0xD2880040,  # mov x0, #0x4002
        0xF2A00020,  # movk x0, #1, lsl #16
        0xF81F0FE0,  # str x0, [sp, #-16]!: the set of signals
        0xD2800000,  # mov x0, #0: SIG_BLOCK
        0x910003E1,  # mov x1, sp
        0xD2800002,  # mov x2, #0
        0xD2800103,  # mov x3, #8
        0xD28010E8,  # mov x8, rt_sigprocmask (135)
        0xD4000001,  # svc #0
        0x14000010,  # b reap (16 words on)
        # wait (word 10)
        0x910003E0,  # mov x0, sp
        0xD2800001,  # mov x1, #0
        0xD2800002,  # mov x2, #0
        0xD2800103,  # mov x3, #8
        0xD2801128,  # mov x8, rt_sigtimedwait (137)
        0xD4000001,  # svc #0
        0xF100441F,  # cmp x0, CHLD
        0x54000100,  # b.eq reap (8 words on)
        0xF100081F,  # cmp x0, INT
        0x54000060,  # b.eq end (3 words on)
        0xF1003C1F,  # cmp x0, TERM
        0x54FFFEA1,  # b.ne wait (11 words back)
        # end (word 22)
        0xD2800000,  # mov x0, #0
        0xD2800BA8,  # mov x8, exit (93)
        0xD4000001,  # svc #0
        # reap (word 25)
        0x92800000,  # mov x0, #-1
        0xD2800001,  # mov x1, #0
        0xD2800022,  # mov x2, WNOHANG
        0xD2800003,  # mov x3, #0
        0xD2802088,  # mov x8, wait4 (260)
        0xD4000001,  # svc #0
        0xF100001F,  # cmp x0, #0
        0x54FFFF2C,  # b.gt reap (7 words back)
        0x17FFFFE9,  # b wait (23 words back)
    ]
    return struct.pack(f"<{len(words)}I", *words)
