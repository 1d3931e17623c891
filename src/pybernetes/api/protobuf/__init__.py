"""Objects that arrive as protobuf, turned into the JSON that everything else here reads.

kubectl and programs built on client-go send what they create, update and delete in this form, and do not fall back to
another one when refused; answers they take in any form. So it is read here and never written.

`envelope` reads what is around every object, `messages` knows the numbers of the fields, `wire` walks the bytes.
"""

from __future__ import annotations

from .envelope import Envelope, as_json, open_envelope
from .wire import ProtobufError

__all__ = ["Envelope", "ProtobufError", "as_json", "open_envelope"]
