"""Gives the pod a link that shares the hardware address of one of the node's links (`ipvlan`).

Kernels without ipvlan are refused by name: `macvlan` is the choice there.
"""

from __future__ import annotations

import struct

from pybernetes.net.netlink.wire import attribute, attributes, number

from ..errors import INVALID_NETWORK_CONFIG, CNIError
from ..fields import field
from ..results import Result
from ..skel import Call, Plugin
from . import sub_interface
from .sub_interface import SubInterface

_MODE = 1
_MODES = {"l2": 0, "l3": 1, "l3s": 2}
_KIND = "ipvlan"


def read_config(call: Call) -> SubInterface:
    """The configuration, checked."""
    mode = field(call.config, "mode", "") or "l2"
    if mode not in _MODES:
        raise CNIError(f'unknown ipvlan mode: "{mode}"', INVALID_NETWORK_CONFIG)
    return sub_interface.read_common(call, _KIND, (attribute(_MODE, struct.pack("=H", _MODES[mode])),))


def add(call: Call) -> Result:
    """Connects the pod."""
    return sub_interface.add(call, read_config(call))


def delete(call: Call) -> None:
    """Takes the pod's link away."""
    sub_interface.delete(call, read_config(call))


def check(call: Call) -> None:
    """Refuses a link that is not as ADD made it."""
    wanted = read_config(call)
    sub_interface.check(call, wanted, lambda data: _difference(data, wanted))


def _difference(data: bytes, wanted: SubInterface) -> str:
    found, mode = number(attributes(data).get(_MODE)), number(attributes(wanted.data[0]).get(_MODE))
    return "" if found == mode else "its mode is another one"


PLUGIN = Plugin(_KIND, add, delete, check, sub_interface.status, sub_interface.gc)
