"""Reading a plugin's configuration: values of the right type, or an error that names the field.

As Go's decoder does, plugins take `null` and the absence of a field for the same thing, and do not mind upper and lower
case in names: containerd writes `HostPort` where the convention says `hostPort`.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from typing import Any, TypeVar

from .errors import DECODING_FAILURE, INVALID_NETWORK_CONFIG, CNIError

T = TypeVar("T", str, bool, int, list[Any], dict[str, Any])

Interface = ipaddress.IPv4Interface | ipaddress.IPv6Interface
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_WORDS = {str: "a string", bool: "true or false", int: "a number", list: "a list", dict: "an object"}


def field(config: Mapping[str, Any], name: str, default: T) -> T:
    """The field's value, of the same type as the default."""
    value = config.get(name)
    if value is None:
        folded = name.lower()
        value = next((config[key] for key in config if key.lower() == folded), None)
        if value is None:
            return default
    wanted = type(default)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise CNIError(f"{name}: must be {_WORDS[wanted]}, not {json.dumps(value)}", DECODING_FAILURE)
    return value


def parse_ip(text: Any, name: str) -> Address:
    """An address; `name` is the field it was found in."""
    try:
        address = ipaddress.ip_address(text if isinstance(text, str) else "")
    except ValueError:
        raise CNIError(f"{name}: invalid IP address: {text}", INVALID_NETWORK_CONFIG) from None
    return getattr(address, "ipv4_mapped", None) or address


def parse_cidr(text: Any, name: str) -> Interface:
    """An address with the length of its prefix, `10.1.2.3/24`."""
    try:
        if not isinstance(text, str) or "/" not in text:
            raise ValueError
        address = ipaddress.ip_interface(text)
    except ValueError:
        raise CNIError(f"{name}: invalid CIDR address: {text}", INVALID_NETWORK_CONFIG) from None
    return address


def plugin_args(text: str, known: set[str]) -> dict[str, str]:
    """The pairs of CNI_ARGS (`K=V;K2=V2`) that a plugin knows; others are an error unless `IgnoreUnknown` is true."""
    found: dict[str, str] = {}
    unknown = []
    for pair in text.split(";") if text else ():
        key, *values = pair.split("=")
        if len(values) != 1:
            raise CNIError(f'ARGS: invalid pair "{pair}"')
        if key == "IgnoreUnknown" or key in known:
            found[key] = values[0]
        else:
            unknown.append(pair)
    ignore = found.pop("IgnoreUnknown", "false").lower()
    if ignore not in ("0", "1", "true", "false"):
        raise CNIError(f"ARGS: error parsing value of IgnoreUnknown: invalid input {ignore}")
    if unknown and ignore not in ("1", "true"):
        raise CNIError("ARGS: unknown args [{}]".format(" ".join(f'"{pair}"' for pair in unknown)))
    return found


def requested_mac(config: Mapping[str, Any], args: str) -> str:
    """The hardware address that a pod shall have: the runtime's comes first, then that of `args`, then of CNI_ARGS."""
    by_environ = plugin_args(args, {"MAC"}).get("MAC", "")
    by_args = field(field(field(config, "args", {}), "cni", {}), "mac", "")
    return field(field(config, "runtimeConfig", {}), "mac", "") or by_args or by_environ
