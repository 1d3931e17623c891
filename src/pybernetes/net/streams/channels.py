"""Channels in WebSocket: the first byte of a message says which of several streams it belongs to. Pure.

`channel.k8s.io` is the first form, `base64.` its form for those who can only send text (the channel is a digit then),
`v4.` means that the error channel carries a Status, and `v5.` that a channel can be closed.
"""

from __future__ import annotations

import base64
import binascii

import msgspec

STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
_CLOSE = 255


class Form(msgspec.Struct, frozen=True):
    """One of the forms."""

    text: bool = False
    """Messages are text, data is base64."""
    status: bool = False
    """The error channel carries a Status, and not just words."""
    closes: bool = False
    """A channel can be closed."""


FORMS = {
    "": Form(),
    "channel.k8s.io": Form(),
    "base64.channel.k8s.io": Form(text=True),
    "v4.channel.k8s.io": Form(status=True),
    "v4.base64.channel.k8s.io": Form(text=True, status=True),
    "v5.channel.k8s.io": Form(status=True, closes=True),
}
V5 = "v5.channel.k8s.io"


class BadMessage(ValueError):
    """A message that belongs to no channel."""


def encode(form: Form, channel: int, data: bytes) -> bytes:
    """A message."""
    if form.text:
        return b"%d" % channel + base64.b64encode(data)
    return bytes((channel,)) + data


def encode_close(channel: int) -> bytes:
    """The message that nothing more comes on a channel, where the form knows that."""
    return bytes((_CLOSE, channel))


def decode(form: Form, message: bytes) -> tuple[int, bytes | None]:
    """Channel and data; None = the channel is closed. Raises BadMessage; an empty message is one."""
    if not message:
        raise BadMessage("the message is empty")
    if form.closes and message[0] == _CLOSE:
        if len(message) != 2:
            raise BadMessage("one channel must follow the signal that it is closed")
        return message[1], None
    if not form.text:
        return message[0], message[1:]
    try:
        return message[0] - ord("0"), base64.b64decode(message[1:], validate=True)
    except binascii.Error as error:
        raise BadMessage(f"not base64: {error}") from None
