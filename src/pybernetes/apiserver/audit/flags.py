"""The flags of the audit log, with upstream's names, defaults and complaints."""

from __future__ import annotations

import argparse

from pybernetes.flags import boolean, file, seconds

API_VERSION = "audit.k8s.io/v1"
MODES = ("batch", "blocking", "blocking-strict")
FORMATS = ("legacy", "json")


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the audit log."""
    add = parser.add_argument
    add("--audit-policy-file", type=file, help="what is recorded; without it nothing is")
    add("--audit-log-path", default="", help="the file to write to, - = standard output")
    add("--audit-log-format", default="json", help="json or legacy")
    add("--audit-log-maxsize", type=int, default=100, help="megabytes after which a new file is begun; 0 = never")
    add("--audit-log-maxage", type=int, default=366, help="days that old files are kept; 0 = for ever")
    add("--audit-log-maxbackup", type=int, default=100, help="old files that are kept; 0 = all")
    add("--audit-log-compress", type=boolean, nargs="?", const=True, default=False, help="compress old files")
    add("--audit-webhook-config-file", type=file, help="whom to send events to, as a kubeconfig")
    add("--audit-webhook-initial-backoff", type=seconds, default=10.0, help="how long to wait before trying again")
    for name, mode, size, wait, throttle in (("log", "blocking", 1, 0.0, False), ("webhook", "batch", 400, 30.0, True)):
        add(f"--audit-{name}-mode", default=mode, help=f"one of {', '.join(MODES)}")
        add(f"--audit-{name}-version", default=API_VERSION, help="the version of the events")
        add(f"--audit-{name}-batch-buffer-size", type=int, default=10_000, help="events that wait at most")
        add(f"--audit-{name}-batch-max-size", type=int, default=size, help="events sent at once at most")
        add(f"--audit-{name}-batch-max-wait", type=seconds, default=wait, help="how long events wait for more")
        add(f"--audit-{name}-batch-throttle-enable", type=boolean, nargs="?", const=True, default=throttle)
        add(f"--audit-{name}-batch-throttle-qps", type=float, default=10.0 if throttle else 0.0)
        add(f"--audit-{name}-batch-throttle-burst", type=int, default=15 if throttle else 0)
        add(f"--audit-{name}-truncate-enabled", type=boolean, nargs="?", const=True, default=False)
        add(f"--audit-{name}-truncate-max-batch-size", type=int, default=10 * 1024 * 1024)
        add(f"--audit-{name}-truncate-max-event-size", type=int, default=100 * 1024)


def check_flags(options: argparse.Namespace) -> list[str]:
    """Errors in the combination of flags."""
    problems: list[str] = []
    if options.audit_log_path:
        problems += _check_backend(options, "log")
        if options.audit_log_format not in FORMATS:
            allowed = ",".join(FORMATS)
            problems.append(f'invalid audit log format {options.audit_log_format}, allowed formats are "{allowed}"')
        for name in ("maxage", "maxbackup", "maxsize"):
            value = getattr(options, f"audit_log_{name}")
            if value < 0:
                problems.append(f"--audit-log-{name} {value} can't be a negative number")
    if options.audit_webhook_config_file:
        problems += _check_backend(options, "webhook")
    return problems


def _check_backend(options: argparse.Namespace, name: str) -> list[str]:
    def value(flag: str) -> object:
        return getattr(options, f"audit_{name}_{flag}")

    problems: list[str] = []
    if value("mode") not in MODES:
        problems.append(f'invalid audit {name} mode {value("mode")}, allowed modes are "{",".join(MODES)}"')
    elif value("mode") == "batch":
        needed = {"buffer size": "batch_buffer_size", "max batch size": "batch_max_size"}
        if value("batch_throttle_enable"):
            needed |= {"throttle QPS": "batch_throttle_qps", "throttle burst": "batch_throttle_burst"}
        for words, flag in needed.items():
            number = value(flag)
            if isinstance(number, int | float) and number <= 0:
                problems.append(f"invalid audit batch {name} {words} {number}, must be a positive number")
    if value("version") != API_VERSION:
        problems.append(f'invalid group version, allowed versions are "{API_VERSION}"')
    if value("truncate_enabled"):
        event, batch = value("truncate_max_event_size"), value("truncate_max_batch_size")
        assert isinstance(event, int)
        assert isinstance(batch, int)
        if event <= 0:
            problems.append(f"invalid audit truncate {name} max event size {event}, must be a positive number")
        elif batch < event:
            problems.append(
                f"invalid audit truncate {name} max batch size {batch}, must be greater than max event size ({event})"
            )
    return problems
