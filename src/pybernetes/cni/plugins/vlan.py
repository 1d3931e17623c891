"""Gives the pod a link for one VLAN of one of the node's links (`vlan`)."""

from __future__ import annotations

import struct

from pybernetes.net.netlink.wire import attribute, attributes, number

from ..errors import INVALID_NETWORK_CONFIG, CNIError
from ..fields import field
from ..results import Result
from ..skel import Call, Plugin
from . import sub_interface
from .sub_interface import SubInterface

_ID = 1
_KIND = "vlan"


def read_config(call: Call) -> SubInterface:
    """The configuration, checked."""
    id = field(call.config, "vlanId", 0)
    if not 0 <= id <= 4094:
        raise CNIError(f"invalid VLAN ID {id} (must be between 0 and 4094 inclusive)", INVALID_NETWORK_CONFIG)
    return sub_interface.read_common(call, _KIND, (attribute(_ID, struct.pack("=H", id)),))


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
    found, expected = number(attributes(data).get(_ID)), number(attributes(wanted.data[0]).get(_ID))
    return "" if found == expected else f"its VLAN is {found}, not {expected}"


PLUGIN = Plugin(_KIND, add, delete, check, sub_interface.status, sub_interface.gc)
