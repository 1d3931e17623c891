"""How the API server reaches kubelets: flags, with upstream's names and defaults."""

from __future__ import annotations

import argparse

from pybernetes.flags import file, seconds, words

ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
PORT = 10250


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    add = parser.add_argument_group("kubelets").add_argument
    which = "types of node addresses to use, best first"
    add("--kubelet-preferred-address-types", type=address_types, default=list(ADDRESS_TYPES), help=which)
    add("--kubelet-client-certificate", type=file, help="as whom this server comes to kubelets")
    add("--kubelet-client-key", type=file, help="the key of that certificate")
    add("--kubelet-certificate-authority", type=file, help="who signs kubelets' certificates; none: they are believed")
    add("--kubelet-timeout", type=seconds, default=5.0, help="how long a connection may take to come about")
    add("--kubelet-port", type=int, default=PORT, help="the port of kubelets that do not say theirs")


def address_types(text: str) -> list[str]:
    """Types of addresses. Raises ArgumentTypeError."""
    found = words(text)
    for each in found:
        if each not in ADDRESS_TYPES:
            raise argparse.ArgumentTypeError(f"unknown address type {each!r}, known are {', '.join(ADDRESS_TYPES)}")
    return found


def check_flags(options: argparse.Namespace) -> list[str]:
    """Errors in the combination of flags."""
    if bool(options.kubelet_client_certificate) != bool(options.kubelet_client_key):
        return ["--kubelet-client-certificate and --kubelet-client-key must be specified together"]
    return []
