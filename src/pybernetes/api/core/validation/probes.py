"""Probes, lifecycle hooks and what they do."""

from __future__ import annotations

from typing import Final

from ...field import FieldError, Path, forbidden, invalid, not_supported, required
from ...meta.validation import validate_not_negative
from ...names import is_http_header_name
from ..v1.pod import PodOS
from ..v1.probe import HTTPGetAction, Lifecycle, LifecycleHandler, Probe
from .common import validate_port_number_or_name

_SCHEMES: Final = ("HTTP", "HTTPS")
_MORE_THAN_ONE: Final = "may not specify more than 1 handler type"
_WINDOWS_SIGNALS: Final = ("SIGKILL", "SIGTERM")
LINUX_SIGNALS: Final = frozenset(
    {
        *(
            f"SIG{name}"
            for name in (
                "ABRT", "ALRM", "BUS", "CHLD", "CLD", "CONT", "FPE", "HUP", "ILL", "INT", "IO", "IOT", "KILL", "PIPE",
                "POLL", "PROF", "PWR", "QUIT", "SEGV", "STKFLT", "STOP", "SYS", "TERM", "TRAP", "TSTP", "TTIN", "TTOU",
                "URG", "USR1", "USR2", "VTALRM", "WINCH", "XCPU", "XFSZ", "RTMIN", "RTMAX",
            )
        ),
        *(f"SIGRTMIN+{number}" for number in range(1, 16)),
        *(f"SIGRTMAX-{number}" for number in range(1, 15)),
    }
)  # fmt: skip


def validate_liveness_probe(probe: Probe, grace_period: int | None, path: Path) -> list[FieldError]:
    """One success is enough to be alive."""
    errors = _validate_probe(probe, grace_period, path)
    if probe.success_threshold != 1:
        errors.append(invalid(path.child("successThreshold"), probe.success_threshold or 0, "must be 1"))
    return errors


validate_startup_probe = validate_liveness_probe


def validate_readiness_probe(probe: Probe, grace_period: int | None, path: Path) -> list[FieldError]:
    """Being unready ends nothing, so there is no grace period."""
    errors = _validate_probe(probe, grace_period, path)
    if probe.termination_grace_period_seconds is not None:
        at = path.child("terminationGracePeriodSeconds")
        errors.append(invalid(at, probe.termination_grace_period_seconds, "must not be set for readinessProbes"))
    return errors


def _validate_probe(probe: Probe, grace_period: int | None, path: Path) -> list[FieldError]:
    errors = _validate_handler(probe, grace_period, path)
    for name, value in (
        ("initialDelaySeconds", probe.initial_delay_seconds),
        ("timeoutSeconds", probe.timeout_seconds),
        ("periodSeconds", probe.period_seconds),
        ("successThreshold", probe.success_threshold),
        ("failureThreshold", probe.failure_threshold),
    ):
        if value is not None and value < 0:
            errors += validate_not_negative(value, path.child(name))
    seconds = probe.termination_grace_period_seconds
    if seconds is not None and seconds <= 0:
        errors.append(invalid(path.child("terminationGracePeriodSeconds"), seconds, "must be greater than 0"))
    return errors


def _validate_handler(handler: Probe | LifecycleHandler, grace_period: int | None, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    if handler.exec is not None:
        count += 1
        if not handler.exec.command:
            errors.append(required(path.child("exec", "command")))
    if handler.http_get is not None:
        if count:
            errors.append(forbidden(path.child("httpGet"), _MORE_THAN_ONE))
        else:
            errors += _validate_http_get(handler.http_get, path.child("httpGet"))
        count += 1
    if handler.tcp_socket is not None:
        if count:
            errors.append(forbidden(path.child("tcpSocket"), _MORE_THAN_ONE))
        else:
            errors += validate_port_number_or_name(handler.tcp_socket.port, path.child("tcpSocket", "port"))
        count += 1
    if isinstance(handler, Probe):
        if handler.grpc is not None:
            if count:
                errors.append(forbidden(path.child("grpc"), _MORE_THAN_ONE))
            else:
                errors += validate_port_number_or_name(handler.grpc.port, path.child("grpc", "port"))
            count += 1
    elif handler.sleep is not None:
        if count:
            errors.append(forbidden(path.child("sleep"), _MORE_THAN_ONE))
        else:
            seconds = handler.sleep.seconds or 0
            if grace_period is not None and not 0 <= seconds <= grace_period:
                detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period})"
                errors.append(invalid(path.child("sleep"), seconds, detail))
        count += 1
    if not count:
        errors.append(required(path, "must specify a handler type"))
    return errors


def _validate_http_get(action: HTTPGetAction, path: Path) -> list[FieldError]:
    errors: list[FieldError] = []
    if not action.path:
        errors.append(required(path.child("path")))
    errors += validate_port_number_or_name(action.port, path.child("port"))
    if action.scheme not in _SCHEMES:
        errors.append(not_supported(path.child("scheme"), action.scheme or "", _SCHEMES))
    for header in action.http_headers or ():
        for problem in is_http_header_name(header.name or ""):
            errors.append(invalid(path.child("httpHeaders"), header.name or "", problem))
    return errors


def validate_lifecycle(
    lifecycle: Lifecycle, grace_period: int | None, os: PodOS | None, path: Path
) -> list[FieldError]:
    """Validate the postStart and preStop hooks."""
    errors: list[FieldError] = []
    if lifecycle.post_start is not None:
        errors += _validate_handler(lifecycle.post_start, grace_period, path.child("postStart"))
    if lifecycle.pre_stop is not None:
        errors += _validate_handler(lifecycle.pre_stop, grace_period, path.child("preStop"))
    signal = lifecycle.stop_signal
    if signal is not None:
        at = path.child("stopSignal")
        if os is None:
            errors.append(forbidden(at, "may not be set for containers with empty `spec.os.name`"))
        elif os.name == "windows" and signal not in _WINDOWS_SIGNALS:
            errors.append(not_supported(at, signal, _WINDOWS_SIGNALS))
        elif os.name == "linux" and signal not in LINUX_SIGNALS:
            errors.append(not_supported(at, signal, LINUX_SIGNALS))
    return errors
