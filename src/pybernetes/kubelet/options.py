"""The flags of `pyb kubelet`, with upstream's names.

Most of upstream's flags are settings of the configuration file: what is typed wins over the file. The rest can only be
given here. Flags without an effect here are reported in the log when given.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from pybernetes.api.core.v1 import Taint
from pybernetes.flags import boolean, go_text, seconds, words

from .config.types import (
    AnonymousAuthentication,
    KubeletAuthentication,
    KubeletAuthorization,
    KubeletConfiguration,
    WebhookAuthentication,
    X509Authentication,
)


def pairs(text: str) -> dict[str, str]:
    """`a=b,c=d`"""
    result = {}
    for each in words(text):
        key, equals, value = each.partition("=")
        if not equals:
            raise argparse.ArgumentTypeError(f"not of the form key=value: {each!r}")
        result[key.strip()] = value.strip()
    return result


def thresholds(text: str) -> dict[str, str]:
    """`memory.available<100Mi,nodefs.available<10%`"""
    result = {}
    for each in words(text):
        key, less, value = each.partition("<")
        if not less:
            raise argparse.ArgumentTypeError(f"not of the form signal<value: {each!r}")
        result[key.strip()] = value.strip()
    return result


def taints(text: str) -> list[Taint]:
    """`key=value:Effect,key:Effect`"""
    result = []
    for each in words(text):
        name, colon, effect = each.rpartition(":")
        if not colon or effect not in ("NoSchedule", "PreferNoSchedule", "NoExecute"):
            raise argparse.ArgumentTypeError(f"not a taint: {each!r}")
        key, _, value = name.partition("=")
        result.append(Taint(key=key, value=value or None, effect=effect))
    return result


def duration(text: str) -> str:
    """A duration as Go writes it."""
    seconds(text)
    return text


_SETTINGS: Final[dict[str, tuple[str, Callable[[str], Any]]]] = {
    "address": ("address", str),
    "allowed-unsafe-sysctls": ("allowed_unsafe_sysctls", words),
    "cgroup-driver": ("cgroup_driver", str),
    "cgroup-root": ("cgroup_root", str),
    "cgroups-per-qos": ("cgroups_per_qos", boolean),
    "cluster-dns": ("cluster_dns", words),
    "cluster-domain": ("cluster_domain", str),
    "container-log-max-files": ("container_log_max_files", int),
    "container-log-max-size": ("container_log_max_size", str),
    "container-runtime-endpoint": ("container_runtime_endpoint", str),
    "cpu-cfs-quota": ("cpu_cfs_quota", boolean),
    "cpu-cfs-quota-period": ("cpu_cfs_quota_period", duration),
    "cpu-manager-policy": ("cpu_manager_policy", str),
    "cpu-manager-policy-options": ("cpu_manager_policy_options", pairs),
    "cpu-manager-reconcile-period": ("cpu_manager_reconcile_period", duration),
    "enable-controller-attach-detach": ("enable_controller_attach_detach", boolean),
    "enable-debugging-handlers": ("enable_debugging_handlers", boolean),
    "enable-server": ("enable_server", boolean),
    "enforce-node-allocatable": ("enforce_node_allocatable", words),
    "eviction-hard": ("eviction_hard", thresholds),
    "eviction-max-pod-grace-period": ("eviction_max_pod_grace_period", int),
    "eviction-minimum-reclaim": ("eviction_minimum_reclaim", pairs),
    "eviction-pressure-transition-period": ("eviction_pressure_transition_period", duration),
    "eviction-soft": ("eviction_soft", thresholds),
    "eviction-soft-grace-period": ("eviction_soft_grace_period", pairs),
    "file-check-frequency": ("file_check_frequency", duration),
    "healthz-bind-address": ("healthz_bind_address", str),
    "healthz-port": ("healthz_port", int),
    "http-check-frequency": ("http_check_frequency", duration),
    "image-gc-high-threshold": ("image_gc_high_threshold_percent", int),
    "image-gc-low-threshold": ("image_gc_low_threshold_percent", int),
    "kube-reserved": ("kube_reserved", pairs),
    "manifest-url": ("static_pod_url", str),
    "max-pods": ("max_pods", int),
    "minimum-image-ttl-duration": ("image_minimum_gc_age", duration),
    "node-status-max-images": ("node_status_max_images", int),
    "node-status-update-frequency": ("node_status_update_frequency", duration),
    "pod-cidr": ("pod_cidr", str),
    "pod-manifest-path": ("static_pod_path", str),
    "pod-max-pids": ("pod_pids_limit", int),
    "pods-per-core": ("pods_per_core", int),
    "port": ("port", int),
    "provider-id": ("provider_id", str),
    "read-only-port": ("read_only_port", int),
    "register-node": ("register_node", boolean),
    "register-with-taints": ("register_with_taints", taints),
    "reserved-cpus": ("reserved_system_cpus", str),
    "resolv-conf": ("resolv_conf", str),
    "rotate-certificates": ("rotate_certificates", boolean),
    "rotate-server-certificates": ("server_tls_bootstrap", boolean),
    "runtime-request-timeout": ("runtime_request_timeout", duration),
    "seccomp-default": ("seccomp_default", boolean),
    "serialize-image-pulls": ("serialize_image_pulls", boolean),
    "streaming-connection-idle-timeout": ("streaming_connection_idle_timeout", duration),
    "sync-frequency": ("sync_frequency", duration),
    "system-reserved": ("system_reserved", pairs),
    "tls-cert-file": ("tls_cert_file", str),
    "tls-cipher-suites": ("tls_cipher_suites", words),
    "tls-min-version": ("tls_min_version", str),
    "tls-private-key-file": ("tls_private_key_file", str),
}
"""Flags that are settings of the configuration, with the setting's name and how the text is read."""

WITHOUT_EFFECT: Final = (
    "cloud-provider",
    "contention-profiling",
    "event-burst",
    "event-qps",
    "exit-on-lock-contention",
    "fail-cgroupv1",
    "fail-swap-on",
    "feature-gates",
    "hairpin-mode",
    "image-service-endpoint",
    "kernel-memcg-notification",
    "kube-api-burst",
    "kube-api-content-type",
    "kube-api-qps",
    "kubelet-cgroups",
    "local-storage-capacity-isolation",
    "lock-file",
    "log-flush-frequency",
    "logging-format",
    "make-iptables-util-chains",
    "max-open-files",
    "memory-manager-policy",
    "oom-score-adj",
    "protect-kernel-defaults",
    "registry-burst",
    "registry-qps",
    "runtime-cgroups",
    "system-cgroups",
    "topology-manager-policy",
    "topology-manager-scope",
    "vmodule",
    "volume-plugin-dir",
    "volume-stats-agg-period",
)
"""Upstream's flags that are taken and change nothing here; the kubelet says so when one is given."""


@dataclass(slots=True)
class Options:
    """The kubelet's command line, parsed."""

    config: str = ""
    config_dir: str = ""
    kubeconfig: str = ""
    bootstrap_kubeconfig: str = ""
    hostname_override: str = ""
    node_ip: list[str] = field(default_factory=list)
    node_labels: dict[str, str] = field(default_factory=dict)
    root_dir: Path = Path("/var/lib/kubelet")
    cert_dir: Path | None = None
    maximum_dead_containers_per_container: int = 1
    maximum_dead_containers: int = -1
    minimum_container_ttl_duration: float = 0.0
    local_volumes_kubeconfig: str = ""
    v: int = 0
    settings: dict[str, Any] = field(default_factory=dict)
    """By the name of the configuration's field."""
    authentication: dict[str, Any] = field(default_factory=dict)

    def apply(self, config: KubeletConfiguration) -> None:
        """Put what was typed over what the file says."""
        for name, value in self.settings.items():
            setattr(config, name, value)
        given = self.authentication
        authentication = config.authentication = config.authentication or KubeletAuthentication()
        if "client_ca_file" in given:
            authentication.x509 = X509Authentication(client_ca_file=given["client_ca_file"])
        if "anonymous_auth" in given:
            authentication.anonymous = AnonymousAuthentication(enabled=given["anonymous_auth"])
        if "authentication_token_webhook" in given:
            authentication.webhook = authentication.webhook or WebhookAuthentication()
            authentication.webhook.enabled = given["authentication_token_webhook"]
        if "authorization_mode" in given:
            config.authorization = config.authorization or KubeletAuthorization()
            config.authorization.mode = given["authorization_mode"]


def parse(argv: Sequence[str]) -> Options:
    """The flags; exits with a message on a bad one."""
    parser = argparse.ArgumentParser(prog="pyb kubelet", description="Runs the pods of one node.", allow_abbrev=False)

    def add(flag: str, kind: Callable[[str], Any], help: str = "", **more: Any) -> None:
        optional: dict[str, Any] = {"nargs": "?", "const": True} if kind is boolean else {}
        name = flag.replace("-", "_")
        parser.add_argument(f"--{flag}", dest=name, type=kind, help=help, default=argparse.SUPPRESS, **optional, **more)

    add("config", str, "file with a KubeletConfiguration")
    add("config-dir", str, "folder with *.conf files that are put over it, in the order of their names")
    add("kubeconfig", str, "how the API server is reached (there is no mode without one)")
    add("bootstrap-kubeconfig", str, "used to ask for a client certificate if --kubeconfig is not there yet")
    add("hostname-override", str, "the node's name, if it is not the machine's")
    add("node-ip", words, "the node's addresses; else that of the default route")
    add("node-labels", pairs, "labels that the node registers with")
    add("root-dir", Path, "where the kubelet keeps its files")
    add("cert-dir", Path, "where certificates are kept that the kubelet gets or makes itself")
    add("maximum-dead-containers-per-container", int, "how many old runs of a container are kept")
    add("maximum-dead-containers", int, "how many dead containers are kept in all, -1 = any number")
    add("minimum-container-ttl-duration", seconds, "how long a dead container is kept at least")
    add("local-volumes-kubeconfig", str, "as whom the driver of local volumes acts; without it there is none here")
    for flag in ("client-ca-file", "authorization-mode"):
        add(flag, str, "as in the configuration file")
    for flag in ("anonymous-auth", "authentication-token-webhook"):
        add(flag, boolean, "as in the configuration file")
    for flag, (_, kind) in _SETTINGS.items():
        add(flag, kind, "as in the configuration file")
    for flag in WITHOUT_EFFECT:
        parser.add_argument(f"--{flag}", dest=f"!{flag}", nargs="?", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.add_argument("-v", "--v", dest="v", type=int, help="how much to log", default=argparse.SUPPRESS)
    given = vars(parser.parse_args(argv))
    for name in [name for name in given if name.startswith("!")]:
        print(f"pyb kubelet: --{name[1:]} has no effect here", file=sys.stderr)
        del given[name]
    options = Options()
    for flag, (setting, _) in _SETTINGS.items():
        name = flag.replace("-", "_")
        if name in given:
            options.settings[setting] = given.pop(name)
    for name in ("client_ca_file", "anonymous_auth", "authentication_token_webhook", "authorization_mode"):
        if name in given:
            options.authentication[name] = given.pop(name)
    for name, value in given.items():
        setattr(options, name, value)
    return options


def flag_values(options: Options, config: KubeletConfiguration) -> dict[str, str]:
    """The flags by name, their values in Go's forms, for `/flagz`; those not given have what is in force."""
    own = [each.name for each in fields(Options) if each.name not in ("settings", "authentication")]
    values = {name: go_text(getattr(options, name), duration=name.endswith("_duration")) for name in own}
    values |= {flag: go_text(getattr(config, setting)) for flag, (setting, _) in _SETTINGS.items()}
    values["register-with-taints"] = ",".join(
        f"{each.key}={each.value or ''}:{each.effect}" for each in config.register_with_taints or ()
    )
    authentication, authorization = config.authentication, config.authorization
    if authentication is not None:
        anonymous, webhook, x509 = authentication.anonymous, authentication.webhook, authentication.x509
        values["anonymous-auth"] = go_text(bool(anonymous and anonymous.enabled))
        values["authentication-token-webhook"] = go_text(bool(webhook and webhook.enabled))
        values["client-ca-file"] = (x509.client_ca_file if x509 else None) or ""
    if authorization is not None:
        values["authorization-mode"] = authorization.mode or ""
    return {name.replace("_", "-"): value for name, value in values.items()}
