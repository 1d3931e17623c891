"""The flags of `pyb scheduler`, with upstream's names and defaults.

Flags that are left out are None where a configuration file may say the same: what is typed wins over the file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybernetes.flags import boolean, go_text, seconds

if TYPE_CHECKING:
    from .config.v1.types import KubeSchedulerConfiguration

WITHOUT_EFFECT = (
    "authentication-skip-lookup",
    "authentication-token-webhook-cache-ttl",
    "authentication-tolerate-lookup-failure",
    "authorization-always-allow-paths",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
    "cert-dir",
    "contention-profiling",
    "disable-http2-serving",
    "emulated-version",
    "feature-gates",
    "http2-max-streams-per-connection",
    "kube-api-content-type",
    "log-flush-frequency",
    "logging-format",
    "permit-address-sharing",
    "permit-port-sharing",
    "profiling",
    "requestheader-allowed-names",
    "requestheader-client-ca-file",
    "requestheader-extra-headers-prefix",
    "requestheader-group-headers",
    "requestheader-uid-headers",
    "requestheader-username-headers",
    "show-hidden-metrics-for-version",
    "tls-cipher-suites",
    "tls-curve-preferences",
    "tls-min-version",
    "tls-sni-cert-key",
    "vmodule",
)
"""Upstream's flags that are taken and change nothing here; the scheduler says so when one is given."""


@dataclass(slots=True)
class Options:
    """The scheduler's command line, parsed."""

    config: str = ""
    policy_config_file: str = ""
    write_config_to: str = ""
    master: str = ""
    kubeconfig: str = ""
    authentication_kubeconfig: str = ""
    authorization_kubeconfig: str = ""
    kube_api_qps: float | None = None
    kube_api_burst: int | None = None
    leader_elect: bool | None = None
    leader_elect_lease_duration: float | None = None
    leader_elect_renew_deadline: float | None = None
    leader_elect_retry_period: float | None = None
    leader_elect_resource_lock: str | None = None
    leader_elect_resource_name: str | None = None
    leader_elect_resource_namespace: str | None = None
    pod_max_in_unschedulable_pods_duration: float = 300.0
    bind_address: str = "0.0.0.0"
    secure_port: int = 10259
    tls_cert_file: str = ""
    tls_private_key_file: str = ""
    client_ca_file: str = ""
    v: int = 0


_HELP: dict[str, str] = {
    "config": "file with a KubeSchedulerConfiguration",
    "policy_config_file": "file with the Policy of old (before v1.23); instead of --config",
    "write_config_to": "write the configuration with its defaults to this file, and exit",
    "master": "address of the API server, instead of the kubeconfig's",
    "kubeconfig": "kubeconfig with the server's address and our credentials; empty = inside of a pod",
    "authentication_kubeconfig": "taken for upstream's sake: tokens are reviewed with --kubeconfig",
    "authorization_kubeconfig": "taken for upstream's sake: access is reviewed with --kubeconfig",
    "kube_api_qps": "requests per second; 0 = no limit, nothing = 50, but only to tell of pods without a place",
    "kube_api_burst": "requests at once, where there is a limit (default 100)",
    "leader_elect": "work only while holding the lock (default true)",
    "leader_elect_lease_duration": "others take over when the lock was not renewed for so long (default 15s)",
    "leader_elect_renew_deadline": "give up when the lock could not be renewed for so long (default 10s)",
    "leader_elect_retry_period": "wait between two tries (default 2s)",
    "leader_elect_resource_lock": "kind of the lock; only leases",
    "leader_elect_resource_name": "name of the lock (default kube-scheduler)",
    "leader_elect_resource_namespace": "namespace of the lock (default kube-system)",
    "pod_max_in_unschedulable_pods_duration": "a pod that no event has helped is tried again after so long",
    "bind_address": "address of the health endpoint",
    "secure_port": "port of the health endpoint, 0 = none",
    "tls_cert_file": "certificate of the health endpoint; empty = a self-signed one",
    "tls_private_key_file": "key of the certificate",
    "client_ca_file": "who this CA has signed may ask for /metrics if he may",
    "v": "how much to log",
}
_DURATIONS = ("_duration", "_deadline", "_period")
_KINDS: dict[str, str] = {name: str(kind) for name, kind in Options.__annotations__.items()}


def parse(argv: Sequence[str]) -> Options:
    """The flags; exits with a message on a bad one."""
    parser = argparse.ArgumentParser(
        prog="pyb scheduler", description="Finds a node for every pod that needs one.", allow_abbrev=False
    )
    for name, help in _HELP.items():
        flag = "--" + name.replace("_", "-")
        flags = ["-v", "--v"] if name == "v" else [flag]
        options: dict[str, Any] = {"dest": name, "help": help, "default": argparse.SUPPRESS}
        if "bool" in _KINDS[name]:
            parser.add_argument(*flags, type=boolean, nargs="?", const=True, **options)
        elif name.endswith(_DURATIONS):
            parser.add_argument(*flags, type=seconds, **options)
        else:
            kind = float if "float" in _KINDS[name] else int if "int" in _KINDS[name] else str
            parser.add_argument(*flags, type=kind, **options)
    for name in WITHOUT_EFFECT:
        parser.add_argument(
            f"--{name}", nargs="?", dest=f"without effect: {name}", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )
    found = vars(parser.parse_args(argv))
    for name in [each for each in found if each.startswith("without effect: ")]:
        del found[name]
        print(f"pyb scheduler: --{name.partition(': ')[2]} has no effect", file=sys.stderr)
    return Options(**found)


def flag_values(options: Options, config: KubeSchedulerConfiguration) -> dict[str, str]:
    """The flags by name, their values in Go's forms, for `/flagz`; those not given have what is in force."""
    election, connection = config.leader_election, config.client_connection
    values: dict[str, Any] = {name: getattr(options, name) for name in _HELP}
    for name in values:
        of, field = (election, name.removeprefix("leader_elect_")) if "leader_elect" in name else (connection, name[9:])
        if values[name] is None and of is not None:
            values[name] = getattr(of, field)
    return {
        name.replace("_", "-"): go_text(value, duration=name.endswith(_DURATIONS)) for name, value in values.items()
    }
