"""D-Bus messages as bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.kubelet.logind import wire


def test_the_bytes_of_a_call() -> None:
    """The first message of every connection, as the specification lays it out."""
    fields = {
        "path": "/org/freedesktop/DBus",
        "interface": "org.freedesktop.DBus",
        "member": "Hello",
        "destination": "org.freedesktop.DBus",
    }
    data = wire.encode(wire.Message(wire.METHOD_CALL, 1, fields=fields))
    assert data[:16] == bytes.fromhex("6c01000100000000010000006d000000")
    assert data[16:24] == b"\x01\x01o\x00\x15\x00\x00\x00"
    assert len(data) == wire.size(data[:16]) == 128


@pytest.mark.parametrize(
    ("signature", "values"),
    [
        ("", ()),
        ("s", ("text",)),
        ("ssss", ("shutdown", "kubelet", "why", "delay")),
        ("b", (True,)),
        ("yqutbd", (1, 2, 3, 4, False, 1.5)),
        ("as", (["a", "", "c"],)),
        ("a{su}", ({"a": 1, "b": 2},)),
        ("(sib)u", (("x", -1, True), 7)),
        ("ai", ([],)),
        ("at", ([1 << 40],)),
        ("aat", ([[1], [], [2, 3]],)),
        ("og", ("/a/b", "a{sv}")),
    ],
)
def test_what_is_written_is_read(signature: str, values: tuple[Any, ...]) -> None:
    message = wire.Message(wire.SIGNAL, 7, body=values, fields={"path": "/x", "interface": "a.b", "member": "C"})
    data = wire.encode(message, signature)
    found = wire.decode(data)
    assert (found.type, found.serial, found.body) == (wire.SIGNAL, 7, values)
    assert found.fields["member"] == "C"
    assert wire.size(data[:16]) == len(data)


def test_a_variant_is_read_as_its_content() -> None:
    data = wire.encode(wire.Message(wire.METHOD_RETURN, 1, body=(("t", 5),), fields={"reply_to": 2}), "v")
    assert wire.decode(data).body == (5,)


@pytest.mark.parametrize("signature", ["a", "(", "(s", "z", "a(", "{s"])
def test_a_signature_that_is_none_is_refused(signature: str) -> None:
    with pytest.raises(wire.WireError):
        wire.split(signature)


@given(st.binary(max_size=200))
def test_nonsense_is_no_message(data: bytes) -> None:
    for prefix in (b"", b"l\x01\x00\x01", b"B\x01\x00\x01"):
        try:
            wire.decode(prefix + data)
        except (wire.WireError, UnicodeDecodeError, ValueError):
            pass


def test_a_message_that_is_too_long_is_not_waited_for() -> None:
    with pytest.raises(wire.WireError, match="too long"):
        wire.size(b"l\x01\x00\x01\xff\xff\xff\xff" + bytes(8))
