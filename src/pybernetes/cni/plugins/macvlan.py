"""Gives the pod a link with a hardware address of its own on one of the node's links (`macvlan`).

The pod is then on that link's network itself. The kernel lets it reach everything there but the node.
"""

from __future__ import annotations

from pybernetes.net.netlink.wire import attribute, attributes, number

from ..errors import INVALID_NETWORK_CONFIG, CNIError
from ..fields import field, requested_mac
from ..netlink.rtnl import mac_bytes
from ..results import Result
from ..skel import Call, Plugin
from . import sub_interface
from .sub_interface import SubInterface

_MODE, _BC_QUEUE_LEN = 1, 7
_MODES = {"private": 1, "vepa": 2, "bridge": 4, "passthru": 8}
_KIND = "macvlan"


def read_config(call: Call) -> SubInterface:
    """The configuration, checked."""
    raw = call.config
    mode = field(raw, "mode", "") or "bridge"
    if mode not in _MODES:
        raise CNIError(f'unknown macvlan mode: "{mode}"', INVALID_NETWORK_CONFIG)
    data = [attribute(_MODE, _MODES[mode])]
    queue = field(raw, "bcqueuelen", 0)
    if not 0 <= queue < 1 << 32:
        raise CNIError(f"bcqueuelen: must be from 0 to 4294967295, not {queue}", INVALID_NETWORK_CONFIG)
    if queue:
        data.append(attribute(_BC_QUEUE_LEN, queue))
    mac = requested_mac(raw, call.args) or field(raw, "mac", "")
    if mac:
        mac_bytes(mac)
    return sub_interface.read_common(call, _KIND, tuple(data), mac)


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
    names = {value: name for name, value in _MODES.items()}
    return "" if found == mode else f"its mode is {names.get(found, found)}, not {names[mode]}"


PLUGIN = Plugin(_KIND, add, delete, check, sub_interface.status, sub_interface.gc)
