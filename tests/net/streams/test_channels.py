"""Channels in WebSocket messages."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.net.streams.channels import FORMS, STDIN, BadMessage, decode, encode, encode_close


@given(st.sampled_from(sorted(FORMS)), st.integers(0, 9), st.binary())
def test_every_form_carries_every_byte(name: str, channel: int, data: bytes) -> None:
    form = FORMS[name]
    if form.closes and channel == 255:
        return
    assert decode(form, encode(form, channel, data)) == (channel, data)


def test_the_wire_is_as_others_have_it() -> None:
    assert encode(FORMS["v4.channel.k8s.io"], 1, b"hi") == b"\x01hi"
    assert encode(FORMS["base64.channel.k8s.io"], 1, b"hi") == b"1aGk="
    assert encode_close(STDIN) == b"\xff\x00"


def test_only_the_fifth_form_closes_channels() -> None:
    assert decode(FORMS["v5.channel.k8s.io"], b"\xff\x00") == (0, None)
    assert decode(FORMS["v4.channel.k8s.io"], b"\xff\x00") == (255, b"\x00")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("v4.channel.k8s.io", b""),
        ("v5.channel.k8s.io", b"\xff"),
        ("v5.channel.k8s.io", b"\xff\x00x"),
        ("base64.channel.k8s.io", b"0&&&"),
    ],
)
def test_what_is_no_message_is_refused(name: str, message: bytes) -> None:
    with pytest.raises(BadMessage):
        decode(FORMS[name], message)
