"""The flags of `pyb apiserver`, with upstream's names and defaults."""

from __future__ import annotations

import argparse
import ipaddress
import socket
import sys
from pathlib import Path
from typing import Any

from pybernetes.api.addresses import parse_cidr
from pybernetes.api.features import INITIALIZERS_NAME
from pybernetes.api.gocompat.quote import quote
from pybernetes.api.resources import OPTIONAL
from pybernetes.api.times import format_duration
from pybernetes.flags import boolean, file, seconds, words
from pybernetes.net import tls as tls_flags
from pybernetes.trace.configuration import TracingConfiguration, of_file
from pybernetes.version import GIT_VERSION

from . import encryption as encryption_flags
from . import idle_flags, runtime_config
from .admission.plugins import check_names
from .audit import flags as audit_flags
from .authn import flags as authn_flags
from .authz.flags import add_flags, check_flags
from .connect import flags as kubelet_flags
from .filters import browsers as browser_flags

RECONCILERS = ("lease", "none")
LOG_FORMATS = ("text", "json")
_NEVER_NEGATIVE = ("max_requests_inflight", "max_mutating_requests_inflight", "shutdown_delay_duration")


def parse(argv: list[str]) -> argparse.Namespace:
    """The flags as attributes. Exits with a message on a bad one."""
    parser = _parser()
    options = parser.parse_args(argv)
    try:
        authn_flags.check(options)
    except ValueError as error:
        parser.error(str(error))
    if bool(options.tls_cert_file) != bool(options.tls_private_key_file):
        parser.error("--tls-cert-file and --tls-private-key-file go together")
    if bool(options.proxy_client_cert_file) != bool(options.proxy_client_key_file):
        parser.error("--proxy-client-cert-file and --proxy-client-key-file must be specified together")
    problems = _check_numbers(options) + _check_services(options)
    problems += check_names(
        options.enable_admission_plugins, options.disable_admission_plugins, options.admission_control
    )
    problems += check_flags(options) + idle_flags.check(options)
    problems += audit_flags.check_flags(options) + runtime_config.check(options.runtime_config)
    problems += _check_initializers(options) + kubelet_flags.check_flags(options)
    if options.enable_priority_and_fairness and _total_seats(options) <= 0:
        problems.append("--max-requests-inflight and --max-mutating-requests-inflight must not sum up to 0")
    options.tracing = None
    if options.tracing_config_file:
        options.tracing, wrong = _tracing(options.tracing_config_file)
        problems += wrong
    if problems:
        parser.error("; ".join(problems))
    for note in idle_flags.notes(options):
        print(f"pyb apiserver: {note}", file=sys.stderr)
    options.service_cidrs = tuple(words(options.service_cluster_ip_range))
    return options


def _tracing(path: str) -> tuple[TracingConfiguration | None, list[str]]:
    """The file that --tracing-config-file names, or what is wrong with it."""
    from pybernetes.api.yaml import yaml_to_json

    try:
        return of_file(yaml_to_json(Path(path).read_bytes())[0]), []
    except (OSError, ValueError) as error:
        return None, [f"--tracing-config-file: {error}"]


def flag_values(options: argparse.Namespace) -> dict[str, str]:
    """The flags by name, their values in Go's forms, as `/flagz` shows them."""
    known = _parser()._actions  # argparse has no other way to ask for them
    found = {each.option_strings[-1].removeprefix("--"): each for each in known if hasattr(options, each.dest)}
    values = {name: _flag_text(each, getattr(options, each.dest)) for name, each in found.items()}
    return {**values, "advertise-address": advertised(options)}


def _flag_text(flag: argparse.Action, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}" if flag.type is float else format_duration(round(value * 1e9))
    if isinstance(value, dict):
        return ",".join(f"{name}={str(each).lower()}" for name, each in value.items())
    if flag.type is _range and isinstance(value, tuple):
        return "-".join(map(str, value))
    if isinstance(value, list | tuple) or not isinstance(flag, argparse._StoreAction):
        return f"[{','.join(getattr(each, 'pattern', None) or str(each) for each in value or ())}]"
    return "" if value is None else str(value)


def _component_port(text: str) -> tuple[str, int]:
    name, _, port = text.partition("=")
    if not name or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"not NAME=PORT: {text}")
    return name, int(port)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pyb apiserver", description="Serves the Kubernetes API.", allow_abbrev=False)
    add = parser.add_argument
    add("--bind-address", type=_address, default="0.0.0.0", help="address to listen on")
    also = "a further address to listen on, at the same port"
    add("--additional-bind-address", type=_address, help=also)
    add("--secure-port", type=_port, default=6443, help="port to listen on, 0 = any free one")
    add("--advertise-address", type=_address, help="address that others reach this server at")
    add("--tls-cert-file", type=file, help="the server's certificate, with its chain")
    add("--tls-private-key-file", type=file, help="the key of the certificate")
    add("--cert-dir", type=Path, default=Path("/var/run/kubernetes"), help="where a self-signed certificate is kept")
    add_flags(parser)
    audit_flags.add_flags(parser)
    add("--etcd-servers", required=True, help="etcd's endpoints, or sqlite:///path/to/file.db, or memory://")
    add("--etcd-cafile", type=file)
    add("--etcd-certfile", type=file)
    add("--etcd-keyfile", type=file)
    add("--etcd-compaction-interval", type=seconds, default=300.0, help="0 = never compact")
    add(
        "--etcd-healthcheck-timeout", type=seconds, default=2.0, help="how long the store may take to be called healthy"
    )
    add("--etcd-readycheck-timeout", type=seconds, default=2.0, help="how long it may take to be called ready")
    add("--trace-dir", type=Path, help="where spans of all components are kept; without it nothing is recorded")
    add("--tracing-config-file", help="a TracingConfiguration: where spans are exported to (OTLP)")
    add("--event-ttl", type=seconds, default=3600.0, help="how long events are kept")
    add("--service-cluster-ip-range", default="10.96.0.0/16", help="one or two CIDRs for Services")
    add("--service-node-port-range", type=_range, default=(30000, 32767))
    port = "node port of the Service kubernetes; 0 = it has none"
    add("--kubernetes-service-node-port", type=int, default=0, help=port)
    health = "NAME=PORT: where scheduler or controller-manager serve /healthz, for ComponentStatuses"
    add("--component-health", type=_component_port, action="append", default=[], help=health)
    add("--endpoint-reconciler-type", default="lease", help="who puts this server into the endpoints: lease or none")
    share = "let others listen on the same address and port"
    add("--permit-port-sharing", type=boolean, nargs="?", const=True, default=False, help=share)
    authn_flags.add_flags(parser)
    tls_flags.add_flags(parser)
    encryption_flags.add_flags(parser)
    kubelet_flags.add_flags(parser)
    browser_flags.add_flags(parser)
    add("--request-timeout", type=_timeout, default=60.0, help="how long a request may take, other than a watch")
    add("--min-request-timeout", type=_lasting, default=1800, help="seconds that a watch lasts at least, twice at most")
    add("--enable-priority-and-fairness", type=boolean, nargs="?", const=True, default=True, help="queues, not limits")
    add("--max-requests-inflight", type=int, default=400, help="reads at once, 0 = no limit")
    add("--max-mutating-requests-inflight", type=int, default=200, help="writes at once, 0 = no limit")
    more = "admission plugins to use beside the usual ones"
    add("--enable-admission-plugins", type=words, action="extend", default=[], help=more)
    fewer = "usual admission plugins not to use"
    add("--disable-admission-plugins", type=words, action="extend", default=[], help=fewer)
    alone = "deprecated: admission plugins to use, and no others"
    add("--admission-control", type=words, action="extend", default=None, help=alone)
    add("--admission-control-config-file", type=file, help="an AdmissionConfiguration: what plugins need to know")
    add("--default-not-ready-toleration-seconds", type=int, default=300, help="how long pods stay on a lost node")
    add("--default-unreachable-toleration-seconds", type=int, default=300, help="the same for one out of reach")
    which = "GROUP/VERSION[/RESOURCE]=true|false, api/all, api/ga, api/beta, api/alpha: what is served"
    add("--runtime-config", type=runtime_config.parse, default={}, help=which)
    certificate = "as whom this server comes to those that extend it"
    add("--proxy-client-cert-file", type=file, help=certificate)
    add("--proxy-client-key-file", type=file, help="the key of that certificate")
    follow = "answer 502 instead of a redirect of a server that extends this one"
    add("--aggregator-reject-forwarding-redirect", type=boolean, nargs="?", const=True, default=True, help=follow)
    collect = "mark what is deleted for the garbage collector; the controller-manager's flag of this name must agree"
    add("--enable-garbage-collector", type=boolean, nargs="?", const=True, default=True, help=collect)
    faults = (
        "/debug/faults and /debug/state for tests (`pyb fault`, `pyb snapshot`): administrators may break the cluster"
    )
    add("--enable-test-endpoints", type=boolean, nargs="?", const=True, default=False, help=faults)
    add(
        "--enforces-network-policy",
        type=boolean,
        nargs="?",
        const=True,
        default=True,
        help="whether the network of nodes does; if not, a NetworkPolicy that is created carries a warning",
    )
    add("--allow-privileged", type=boolean, nargs="?", const=True, default=False, help="let containers be privileged")
    add("--shutdown-delay-duration", type=seconds, default=0.0, help="serve on for this long after SIGTERM")
    add("--livez-grace-period", type=seconds, default=0.0, help="for so long /livez believes in what has yet to start")
    add("--disabled-metrics", type=words, action="extend", default=[], help="metrics that are not served")
    add("--logging-format", default="text", help="text or json")
    idle_flags.add_flags(parser)
    add("--version", action="version", version=f"Kubernetes {GIT_VERSION}")
    add("-v", "--v", type=int, default=0, help="how much to log")
    return parser


def advertised(options: argparse.Namespace) -> str:
    """The address to tell others: the one given, the one bound to, or the one of the default route."""
    if options.advertise_address:
        return str(options.advertise_address)
    bound = ipaddress.ip_address(options.bind_address)
    if not bound.is_unspecified and not bound.is_loopback:
        return str(bound)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # a documentation address; nothing is sent
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _port(text: str) -> int:
    if not text.isdigit() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"not a port: {text}")
    return int(text)


def _timeout(text: str) -> float:
    found = seconds(text)
    if found < 0:
        raise argparse.ArgumentTypeError("can not be negative value")
    return found or 60.0


def _lasting(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError("can not be negative value")
    return int(text)


def _range(text: str) -> tuple[int, int]:
    low, dash, high = text.partition("-")
    if not dash or not low.isdigit() or not high.isdigit() or not 0 < int(low) <= int(high) < 65536:
        raise argparse.ArgumentTypeError(f"not a range of ports: {text}")
    return int(low), int(high)


def _check_numbers(options: argparse.Namespace) -> list[str]:
    names = [name for name in _NEVER_NEGATIVE if getattr(options, name) < 0]
    problems = [f"--{name.replace('_', '-')} can not be negative value" for name in names]
    if options.livez_grace_period < 0:
        problems.append("--livez-grace-period can not be a negative value")
    if options.logging_format not in LOG_FORMATS:
        problems.append(f"format: Invalid value: {quote(options.logging_format)}: Unsupported log format")
    return problems


def _check_services(options: argparse.Namespace) -> list[str]:
    """The ranges of Services' addresses and ports, and how this server is found behind one."""
    ranges = words(options.service_cluster_ip_range)
    if len(ranges) > 2:
        return ["--service-cluster-ip-range must not contain more than two entries"]
    parsed = [parse_cidr(each) for each in ranges]
    problems = [f"service-cluster-ip-range[{i}] is not a valid cidr" for i, each in enumerate(parsed) if each is None]
    families = [each[1].version for each in parsed if each is not None]
    if families in ([4, 4], [6, 6]):
        flag = "--service-cluster-ip-range"
        problems.append(f"{flag}[0] and {flag}[1] must be of different IP family")
    port, (low, high) = options.kubernetes_service_node_port, options.service_node_port_range
    if not 0 <= port <= 65535:
        problems.append(
            f"--kubernetes-service-node-port {port} must be between 0 and 65535, inclusive. "
            "If 0, the Kubernetes master service will be of type ClusterIP"
        )
    if port > 0 and not low <= port <= high:
        problems.append(f"kubernetes service node port range {low}-{high} doesn't contain {port}")
    if options.endpoint_reconciler_type not in RECONCILERS:
        problems.append(f"unknown reconciler type: {options.endpoint_reconciler_type}, known are lease and none")
    return problems


def _check_initializers(options: argparse.Namespace) -> list[str]:
    """Both flags belong to the feature: without the API there is no way to configure initializers."""
    if INITIALIZERS_NAME not in options.enable_admission_plugins:
        return []
    resource = next(each for each, _ in OPTIONAL if each.kind == "InitializerConfiguration")
    if runtime_config.enabled(options.runtime_config, resource, False):
        return []
    return ["the Initializers admission plugin needs --runtime-config=admissionregistration.k8s.io/v1alpha1=true"]


def _total_seats(options: argparse.Namespace) -> int:
    return int(options.max_requests_inflight + options.max_mutating_requests_inflight)
