"""Results of plugins as JSON: interfaces, addresses, routes and DNS, in any version of the specification.

Inside, a result is always in the newest form, without `cniVersion`: `read` brings what a plugin printed into it,
`written` makes of it what a caller of some version wants to see. Version 0.2.0 and older have one address for each
family and no interfaces; 0.3.0 to 0.4.0 say `"version": "4"` beside each address.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .errors import DECODING_FAILURE, INCOMPATIBLE_VERSION, CNIError
from .fields import field, parse_cidr, parse_ip
from .versions import SUPPORTED, at_least

Result = dict[str, Any]


def read(printed: Mapping[str, Any], version: str = "") -> Result:
    """A plugin's result in the newest form; `version` is that of its configuration, for results that say none."""
    version = field(printed, "cniVersion", "") or version or "0.1.0"
    if version not in SUPPORTED:
        raise CNIError(f'unsupported CNI result version "{version}"', INCOMPATIBLE_VERSION)
    old = not at_least(version, "0.3.0")
    result: Result = _from_02(printed) if old else {key: printed[key] for key in _LISTS if printed.get(key)}
    for key in _LISTS:
        if not all(isinstance(entry, dict) for entry in field(result, key, [])):
            raise CNIError(f"{key}: must be a list of objects", DECODING_FAILURE)
    if "ips" in result:
        result["ips"] = [
            {key: ip[key] for key in ("interface", "address", "gateway") if key in ip} for ip in result["ips"]
        ]
        for ip in result["ips"]:
            parse_cidr(ip.get("address"), "ips")
            if ip.get("gateway"):
                parse_ip(ip["gateway"], "ips")
    for route in result.get("routes", ()):
        parse_cidr(route.get("dst"), "routes")
    result["dns"] = field(printed, "dns", {})
    return result


def written(result: Result, version: str) -> Result:
    """The result as a caller of this version of the specification reads it."""
    version = version or "0.1.0"
    if version not in SUPPORTED:
        raise CNIError(f'unsupported CNI result version "{version}"', INCOMPATIBLE_VERSION)
    if not at_least(version, "0.3.0"):
        return _as_02(result, version)
    printed: Result = {"cniVersion": version}
    printed |= {key: result[key] for key in _LISTS if result.get(key)}
    if not at_least(version, "1.1.0") and "interfaces" in printed:
        old = ("name", "mac", "sandbox")
        printed["interfaces"] = [{key: link[key] for key in old if link.get(key)} for link in printed["interfaces"]]
    if not at_least(version, "1.0.0") and "ips" in printed:
        printed["ips"] = [{"version": "6" if ":" in ip["address"] else "4", **ip} for ip in printed["ips"]]
    printed["dns"] = result.get("dns") or {}
    return printed


def is_v6(text: str) -> bool:
    """Whether an address, with or without the length of its prefix, is of IPv6."""
    return ":" in text


_LISTS = ("interfaces", "ips", "routes")


def _from_02(printed: Mapping[str, Any]) -> Result:
    ips: list[Any] = []
    routes: list[Any] = []
    for family in ("ip4", "ip6"):
        config = field(printed, family, {})
        if not config:
            continue
        gateway = config.get("gateway")
        ips.append({"address": config.get("ip")} | ({"gateway": gateway} if gateway else {}))
        routes += field(config, "routes", [])
    result: Result = {}
    if ips:
        result["ips"] = ips
    if routes:
        result["routes"] = routes
    return result


def _as_02(result: Result, version: str) -> Result:
    printed: Result = {"cniVersion": version}
    for ip in result.get("ips", ()):
        family = "ip6" if is_v6(ip["address"]) else "ip4"
        if family in printed:
            continue
        config: dict[str, Any] = {"ip": ip["address"]}
        if ip.get("gateway"):
            config["gateway"] = ip["gateway"]
        routes = [route for route in result.get("routes", ()) if is_v6(route["dst"]) == (family == "ip6")]
        if routes:
            config["routes"] = [{key: route[key] for key in ("dst", "gw") if route.get(key)} for route in routes]
        printed[family] = config
    if len(printed) == 1:
        raise CNIError("cannot convert: no valid IP addresses", INCOMPATIBLE_VERSION)
    printed["dns"] = result.get("dns") or {}
    return printed
