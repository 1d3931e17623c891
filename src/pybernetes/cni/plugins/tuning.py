"""Changes kernel parameters and the link of a pod (`tuning`), behind the plugin that made the link.

What the link was before is written down in `dataDir`, and DEL restores it: a link that is moved back to the node is as
it was. Parameters are those of the pod's namespace, below `net`; `IFNAME` in their names is the pod's link.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from ..errors import DECODING_FAILURE, INVALID_NETWORK_CONFIG, CNIError, NamespaceNotFound, reason
from ..fields import field, requested_mac
from ..netlink.namespace import Namespace, sysctl
from ..netlink.rtnl import ALLMULTI, PROMISC, Link, LinkNotFound, Netlink, mac_bytes
from ..results import Result
from ..skel import Call, Plugin

DATA_DIR = "/run/cni/tuning"
ALLOW_LIST = "/etc/cni/tuning/allowlist.conf"
"""One regular expression a line; where the file exists, only parameters that one of them matches may be changed."""

Settings = dict[str, Any]
"""mac, promisc, mtu, allmulti, txQLen: those that are given."""


def add(call: Call) -> Result:
    """Changes the parameters and the link; the result is that of the plugins before."""
    previous = call.prev_result
    if previous is None:
        raise CNIError("Required prevResult missing")
    parameters, wanted = read_config(call)
    _refuse_unlisted(parameters)
    with Namespace(call.netns) as netns:
        for name, value in parameters.items():
            try:
                netns.run(sysctl, name, value)
            except OSError as error:
                raise CNIError(f"failed to set {name} to {value!r}: {reason(error)}") from None
        if wanted:
            _write_down(call, netns.run(_settings, call.ifname, wanted))
            netns.run(_apply, call.ifname, wanted)
    for link in previous.get("interfaces", ()):
        if link.get("name") == call.ifname and link.get("sandbox"):
            link.update({key: wanted[key] for key in ("mac", "mtu") if key in wanted})
    return previous


def delete(call: Call) -> None:
    """Gives the link back what it had."""
    file = _backup(call)
    try:
        before: Settings = json.loads(file.read_bytes())
    except (FileNotFoundError, ValueError):
        file.unlink(missing_ok=True)
        return
    try:
        with Namespace(call.netns) as netns:
            netns.run(_apply, call.ifname, before)
    except (NamespaceNotFound, LinkNotFound):
        pass
    file.unlink(missing_ok=True)


def check(call: Call) -> None:
    """Refuses a parameter or a property of the link that was changed since ADD."""
    if call.prev_result is None:
        raise CNIError("Required prevResult missing")
    parameters, wanted = read_config(call)
    with Namespace(call.netns) as netns:
        for name, value in parameters.items():
            found = netns.run(sysctl, name)
            if found.split() != value.split():
                raise CNIError(f"Error: Tuning configured value of {name} is {value}, current value is {found}")
        for name, value in netns.run(_settings, call.ifname, wanted).items():
            if value != wanted[name]:
                problem = (
                    f"Error: Tuning configured {name} of {call.ifname} is {wanted[name]}, current value is {value}"
                )
                raise CNIError(problem)


def read_config(call: Call) -> tuple[dict[str, str], Settings]:
    """The parameters by their path below /proc/sys, and the settings of the link."""
    raw = call.config
    parameters = {}
    for name, value in field(raw, "sysctl", {}).items():
        if not isinstance(value, str):
            raise CNIError(f"sysctl: {name}: must be a string, not {json.dumps(value)}", DECODING_FAILURE)
        parameters[_path(name, call.ifname)] = value
    wanted: Settings = {}
    mac = requested_mac(raw, call.args) or field(raw, "mac", "")
    if mac:
        wanted["mac"] = mac_bytes(mac).hex(":")
    for key in ("promisc", "allmulti"):
        if field(raw, key, False):
            wanted[key] = True
    for key in ("mtu", "txQLen"):
        if raw.get(key) is not None and (field(raw, key, 0) or key == "txQLen"):
            wanted[key] = field(raw, key, 0)
            if not 0 <= wanted[key] < 1 << 31:
                raise CNIError(f"{key}: must not be less than 0, not {wanted[key]}", INVALID_NETWORK_CONFIG)
    return parameters, wanted


def _path(name: str, ifname: str) -> str:
    """`net.ipv4.conf.IFNAME.x` as `net/ipv4/conf/eth0/x`. In a name with slashes dots belong to links."""
    path = name if "/" in name else name.replace(".", "/")
    parts = [ifname if part == "IFNAME" else part for part in path.split("/")]
    if len(parts) < 2 or parts[0] != "net" or any(part in ("", ".", "..") for part in parts):
        raise CNIError(f"invalid net sysctl key: {name!r}", INVALID_NETWORK_CONFIG)
    return "/".join(parts)


def _refuse_unlisted(parameters: dict[str, str]) -> None:
    try:
        lines = Path(ALLOW_LIST).read_text().split()
    except FileNotFoundError:
        return
    try:
        allowed = [re.compile(line) for line in lines]
    except re.error as error:
        raise CNIError(f"{ALLOW_LIST}: {error}") from None
    for name in parameters:
        dotted = name.replace("/", ".")
        if not any(each.search(dotted) or each.search(name) for each in allowed):
            raise CNIError(f"Sysctl {dotted} is not allowed. Only the following sysctls are allowed: {lines}")


def _settings(ifname: str, wanted: Settings) -> Settings:
    """The link's current values of the settings in `wanted`."""
    with Netlink() as netlink:
        link: Link = netlink.link(ifname)
    found = {
        "mac": link.mac,
        "promisc": bool(link.flags & PROMISC),
        "allmulti": bool(link.flags & ALLMULTI),
        "mtu": link.mtu,
        "txQLen": link.queue,
    }
    return {key: found[key] for key in wanted}


def _apply(ifname: str, wanted: Settings) -> None:
    with Netlink() as netlink:
        index = netlink.link(ifname).index
        try:
            netlink.set_link(
                index,
                mac=wanted.get("mac", ""),
                promisc=wanted.get("promisc"),
                allmulti=wanted.get("allmulti"),
                mtu=wanted.get("mtu", 0),
                queue=wanted.get("txQLen"),
            )
        except OSError as error:
            raise CNIError(f"failed to change {ifname}: {reason(error)}") from None


def _backup(call: Call) -> Path:
    return Path(field(call.config, "dataDir", "") or DATA_DIR) / f"{call.container_id}_{call.ifname}.json"


def _write_down(call: Call, before: Settings) -> None:
    file = _backup(call)
    if file.exists():  # an ADD that is repeated: what was there at first counts
        return
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_name(f".{file.name}.{os.getpid()}")
    fresh.write_text(json.dumps(before))
    fresh.replace(file)


PLUGIN = Plugin("tuning", add, delete, check)
