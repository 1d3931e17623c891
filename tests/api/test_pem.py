"""Blocks of PEM in a text, as Go finds them."""

from __future__ import annotations

import time

import pytest

from pybernetes.api import pem

ONE = b"-----BEGIN A-----\naGVsbG8=\n-----END A-----\n"


@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"", []),
        (b"hello", []),
        (ONE, [("A", b"hello")]),
        (ONE + ONE.replace(b"A", b"B C"), [("A", b"hello"), ("B C", b"hello")]),
        (b"words before\n" + ONE + b"words after", [("A", b"hello")]),
        (ONE.replace(b"\n", b"\r\n"), [("A", b"hello")]),
        (ONE.rstrip(b"\n"), [("A", b"hello")]),
        (b"-----BEGIN A-----\naGVs\nbG8=\n-----END A-----\n", [("A", b"hello")]),
        (b"-----BEGIN A-----\n-----END A-----\n", [("A", b"")]),
        (b"-----BEGIN A-----\naGVsbG8=\n-----END B-----\n", []),
        (b"-----BEGIN A-----\n!!!!\n-----END A-----\n", []),
        (b"-----BEGIN A-----\n!!!!\n-----END A-----\n" + ONE, [("A", b"hello")]),
        (b"x-----BEGIN A-----\naGVsbG8=\n-----END A-----\n", []),
    ],
)
def test_blocks_are_found_in_the_midst_of_anything(data: bytes, found: list[tuple[str, bytes]]) -> None:
    assert [(block.type, block.data) for block in pem.blocks(data)] == found


def test_headers_are_read() -> None:
    (block,) = pem.blocks(b"-----BEGIN A-----\nKey: Value\nOther: x\n\naGVsbG8=\n-----END A-----\n")
    assert block == ("A", {"Key": "Value", "Other": "x"}, b"hello")


def test_what_is_no_certificate_is_refused() -> None:
    with pytest.raises(pem.PEMError, match="x509: malformed certificate"):
        pem.check_certificate(b"hello")


@pytest.mark.parametrize(
    "line",
    [b"-----BEGIN A-----\n", b"-----BEGIN A:B-----\n", b"-----BEGIN A-----\nK: v\n", b"-----BEGIN A-----\nYQ==\n"],
)
@pytest.mark.parametrize(
    "end", [b"", b"-----END A-----", b"-----END B-----\n", b"-----END A-----" + b" " * 5000 + b"x"]
)
def test_many_beginnings_take_time_in_proportion(line: bytes, end: bytes) -> None:
    """One request of 500 KB held up the whole server for 20 s."""
    began = time.thread_time()
    list(pem.blocks(line * 8000 + end))
    assert time.thread_time() - began < 0.5
