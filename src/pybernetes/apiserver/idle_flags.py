"""Upstream's flags that change nothing here, and those that are refused.

A start script that was written for upstream should work where a flag is about something that is not here, HTTP/2 or
profiles or the sizes of caches: such flags are accepted, checked as upstream checks them, and a warning says
that they have no effect. A flag that promises something, a limit or a way for connections or another place, is refused
unless its value is the actual behaviour: users must not rely on protection that is not there.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from pybernetes.api.gocompat.quote import quote
from pybernetes.api.times import format_duration
from pybernetes.flags import boolean, seconds, words

from . import feature_gates

_MINOR: Final = 36
_OLDEST: Final = 33  # the oldest minor version that upstream's v1.36 can emulate
_VERSION = re.compile(r"(?:kube=)?v?(\d+)\.(\d+)")
_MEDIA_TYPES: Final = ("application/json", "application/vnd.kubernetes.protobuf", "application/yaml")
_MOST_GOAWAYS: Final = 0.02


class Flag(NamedTuple):
    """A flag that does nothing, or may say nothing but what is so; `why` is for people."""

    name: str
    type: Callable[[str], Any]
    default: Any
    why: str


_HTTP2 = "HTTP/1.1 alone is served"
_PROFILES = "there are no profiles"
_COORDINATED = "the feature is off, as upstream's default"
_ALPHA_LOGS = "Feature LoggingAlphaOptions is disabled"
_PEERS = "requests are not passed on to other servers of the cluster"
_LABELS = "the values of metrics' labels cannot be restricted"

WITHOUT_EFFECT: Final = (
    Flag("contention-profiling", boolean, False, _PROFILES),
    Flag("profiling", boolean, True, _PROFILES),
    Flag("coordinated-leadership-lease-duration", seconds, 15.0, _COORDINATED),
    Flag("coordinated-leadership-renew-deadline", seconds, 10.0, _COORDINATED),
    Flag("coordinated-leadership-retry-period", seconds, 2.0, _COORDINATED),
    Flag("delete-collection-workers", int, 1, "one thread serves all requests"),
    Flag("disable-http2-serving", boolean, False, _HTTP2),
    Flag("goaway-chance", float, 0.0, _HTTP2),
    Flag("http2-max-streams-per-connection", int, 0, _HTTP2),
    Flag("enable-aggregator-routing", boolean, False, "Services are always reached at their endpoints"),
    Flag("etcd-count-metric-poll-period", seconds, 60.0, "objects are counted at each scrape"),
    Flag("etcd-db-metric-poll-interval", seconds, 30.0, "there is no such metric"),
    Flag("lease-reuse-duration-seconds", int, 60, "leases are used for a twentieth of their time, a minute at most"),
    Flag("log-flush-frequency", seconds, 5.0, "every line is written at once"),
    Flag("min-compatibility-version", words, [], "there are no older servers to agree with"),
    Flag("permit-address-sharing", boolean, False, "it is always so"),
    Flag("show-hidden-metrics-for-version", str, "", "none are hidden"),
    Flag("shutdown-watch-termination-grace-period", seconds, 0.0, "watches are ended at once and waited for"),
    Flag("storage-backend", str, "", "--etcd-servers says which store it is"),
    Flag("storage-initialization-timeout", seconds, 60.0, "the store is read before anything is served"),
    Flag("storage-media-type", str, "application/json", "objects are stored as JSON"),
    Flag("vmodule", words, [], "modules here have other names"),
    Flag("watch-cache", boolean, True, "everything is served from the cache"),
    Flag("watch-cache-sizes", words, [], "everything is served from the cache"),
)
"""Flags that are accepted and checked, with a warning."""

REFUSED: Final = (
    Flag("allow-metric-labels", str, "", _LABELS),
    Flag("allow-metric-labels-manifest", str, "", _LABELS),
    Flag("debug-socket-path", str, "", _PROFILES),
    Flag("egress-selector-config-file", str, "", "connections go out directly, never through a proxy"),
    Flag("enable-logs-handler", boolean, False, "files of the machine are not served"),
    Flag("etcd-prefix", str, "/registry", "keys begin with /registry"),
    Flag("etcd-servers-overrides", words, [], "all resources are in one store"),
    Flag("log-json-info-buffer-size", str, "", "options.json.infoBufferSize: Forbidden: " + _ALPHA_LOGS),
    Flag("log-json-split-stream", boolean, False, "options.json.splitStream: Forbidden: " + _ALPHA_LOGS),
    Flag("log-text-info-buffer-size", str, "", "options.text.infoBufferSize: Forbidden: " + _ALPHA_LOGS),
    Flag("log-text-split-stream", boolean, False, "options.text.splitStream: Forbidden: " + _ALPHA_LOGS),
    Flag("max-connection-bytes-per-sec", int, 0, "connections are not throttled"),
    Flag("peer-advertise-ip", str, "", _PEERS),
    Flag("peer-advertise-port", str, "", _PEERS),
    Flag("peer-ca-file", str, "", _PEERS),
    Flag("shutdown-send-retry-after", boolean, False, "the listening sockets are closed during the shutdown"),
)
"""Refused with any other value than the default."""

_NEVER_NEGATIVE: Final = ("storage-initialization-timeout", "shutdown-watch-termination-grace-period")
_FORWARD: Final = {
    "emulation-forward-compatible": "EmulationForwardCompatible",
    "runtime-config-emulation-forward-compatible": "RuntimeConfigEmulationForwardCompatible",
}


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    idle = parser.add_argument_group("without effect", "taken for upstream's sake").add_argument
    for flag in WITHOUT_EFFECT:
        idle(f"--{flag.name}", default=flag.default, help=f"no effect: {flag.why}", **_kind(flag.type))
    refused = parser.add_argument_group("refused", "may only say what is so anyway").add_argument
    for flag in REFUSED:
        refused(f"--{flag.name}", default=flag.default, help=f"refused: {flag.why}", **_kind(flag.type))
    for name in _FORWARD:
        refused(f"--{name}", default=False, help="refused: no older version is emulated", **_kind(boolean))
    refused("--emulated-version", default=[], help="refused but for 1.36: no older version is emulated", **_kind(words))
    gates = "[kube:]NAME=true|false, only as upstream's default has it: gates cannot be turned over"
    refused("--feature-gates", default=[], help=gates, **_kind(words))


def check(options: argparse.Namespace) -> list[str]:
    """Errors in them, with upstream's wording where upstream has any."""
    given = {name.replace("_", "-"): value for name, value in vars(options).items()}
    problems = feature_gates.check(options.feature_gates)
    problems += [f"--{each.name}: {each.why}" for each in REFUSED if given[each.name] != each.default]
    if not 0 <= options.goaway_chance <= _MOST_GOAWAYS:
        problems.append(f"--goaway-chance can not be less than 0 or greater than {_MOST_GOAWAYS}")
    for name in _NEVER_NEGATIVE:
        if given[name] < 0:
            optional = name.startswith("shutdown")
            problems.append(
                f"{name}, if provided, can not be a negative value"
                if optional
                else f"--{name} can not be negative value"
            )
    for name, field in _FORWARD.items():
        if given[name]:
            same = "if the emulation version is the same as the binary version"
            problems.append(f"ServerRunOptions.{field} cannot be set to true {same}")
    return problems + _check_versions(options) + _check_leadership(options) + _check_forms(options)


def notes(options: argparse.Namespace) -> list[str]:
    """Warnings about given flags that have no effect."""
    return [
        f"--{flag.name} has no effect: {flag.why}"
        for flag in WITHOUT_EFFECT
        if getattr(options, flag.name.replace("-", "_")) != flag.default
    ]


def _check_versions(options: argparse.Namespace) -> list[str]:
    problems = []
    for text in options.emulated_version:
        minor = _minor(text)
        if minor is None:
            problems.append(f"could not parse {quote(text.removeprefix('kube='))} as version")
        elif not _OLDEST <= minor <= _MINOR:
            problems.append(f"emulation version 1.{minor} is not between [1.{_OLDEST}, 1.{_MINOR}.0]")
        elif minor != _MINOR:
            problems.append(f"--emulated-version: 1.{minor} cannot be emulated, this server is 1.{_MINOR} only")
    for text in options.min_compatibility_version:
        minor = _minor(text)
        if minor is None:
            problems.append(f"could not parse {quote(text.removeprefix('kube='))} as version")
        elif not _OLDEST <= minor <= _MINOR:
            problems.append(f"minCompatibilityVersion version 1.{minor} is not between [1.{_OLDEST}, 1.{_MINOR}]")
    hidden = options.show_hidden_metrics_for_version
    if hidden not in ("", f"1.{_MINOR - 1}"):
        problems.append(
            f"metrics.showHiddenMetricsForVersion: Invalid value: {quote(hidden)}: must be omitted or have the value "
            f"'1.{_MINOR - 1}'; only the previous minor version is allowed"
        )
    return problems


def _minor(text: str) -> int | None:
    found = _VERSION.fullmatch(text)
    return int(found[2]) if found and found[1] == "1" else None


def _check_leadership(options: argparse.Namespace) -> list[str]:
    lease, renew, retry = (
        options.coordinated_leadership_lease_duration,
        options.coordinated_leadership_renew_deadline,
        options.coordinated_leadership_retry_period,
    )
    name = "--coordinated-leadership"
    problems = []
    if lease <= renew:
        problems.append(f"{name}-lease-duration must be greater than {name}-renew-deadline")
    if renew <= retry:
        problems.append(f"{name}-renew-deadline must be greater than {name}-retry-period")
    return problems


def _check_forms(options: argparse.Namespace) -> list[str]:
    problems = []
    if options.storage_backend not in ("", "etcd3"):
        problems.append(
            "--storage-backend invalid, allowed values: etcd3. If not specified, it will default to 'etcd3'"
        )
    media = options.storage_media_type
    if media and media not in _MEDIA_TYPES:
        problems.append(f"--storage-media-type {quote(media)} invalid, allowed values: {', '.join(_MEDIA_TYPES)}")
    for each in options.watch_cache_sizes:
        _, mark, size = each.partition("#")
        if not mark or "#" in size:
            problems.append(f"invalid value of watch cache size: {each}")
        elif not re.fullmatch(r"[+-]?\d+", size):
            problems.append(f"invalid size of watch cache size: {each}")
        elif int(size) < 0:
            problems.append(f"watch cache size cannot be negative: {each}")
    frequency = options.log_flush_frequency
    if frequency <= 0:
        shown = quote(format_duration(round(frequency * 1e9)))
        problems.append(f"flushFrequency: Invalid value: {shown}: Must be greater than zero")
    for each in options.vmodule:
        if not re.fullmatch(r"[^=]+=\d+", each):
            problems.append(f"{quote(each)} does not have the pattern=N format")
    return problems


def _kind(type_: Callable[[str], Any]) -> dict[str, Any]:
    if type_ is boolean:
        return {"type": boolean, "nargs": "?", "const": True}
    return {"type": words, "action": "extend"} if type_ is words else {"type": type_}
