"""From the flags to what records requests; None if nothing is to be recorded."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable
from pathlib import Path

import msgspec

from . import metrics, policy
from .batching import Backend, Batching, BatchSettings
from .event import Event, encode, legacy_line
from .log_backend import LogBackend, RotatingFile
from .policy import PolicyEvaluator
from .webhook_backend import WebhookBackend

log = logging.getLogger(__name__)
_TRUNCATED = "audit.k8s.io/truncated"

Emit = Callable[[Event], bool]


class Auditing:
    """The policy and where events go."""

    def __init__(self, evaluator: PolicyEvaluator) -> None:
        self.evaluator = evaluator
        self._sinks: list[Emit] = []
        self.batches: list[Batching] = []
        self._backends: list[Backend] = []

    def emit(self, event: Event) -> bool:
        """Give an event to all; false if one that must have it has it not."""
        metrics.EVENTS.add()
        kept = True
        for sink in self._sinks:
            kept = sink(event) and kept
        if not kept:
            metrics.REJECTED.add()
        return kept

    def add(
        self, name: str, backend: Backend, write: Callable[[list[bytes]], bool] | None, options: argparse.Namespace
    ) -> None:
        """Send events to a backend as its flags say; `write` is the way without waiting, where there is one."""

        def flag(suffix: str) -> object:
            return getattr(options, f"audit_{name}_{suffix}")

        line = _liner(name == "log" and options.audit_log_format == "legacy")
        limit = flag("truncate_max_event_size") if flag("truncate_enabled") else 0
        assert isinstance(limit, int)
        if flag("mode") == "batch" or write is None:
            batch = flag("mode") == "batch"
            settings = BatchSettings(
                buffer_size=int(str(flag("batch_buffer_size"))),
                max_size=int(str(flag("batch_max_size"))) if batch else 1,
                max_wait=float(str(flag("batch_max_wait"))) if batch else 0.0,
                throttle=bool(flag("batch_throttle_enable")) and batch,
                qps=float(str(flag("batch_throttle_qps"))),
                burst=int(str(flag("batch_throttle_burst"))),
                max_bytes=int(str(flag("truncate_max_batch_size"))) if limit else 0,
            )
            batching = Batching(backend, settings, name)
            self.batches.append(batching)

            def later(event: Event) -> bool:
                data = _limited(event, line, limit, name)
                if data is not None:
                    batching.add(data)
                return True

            self._sinks.append(later)
            return
        self._backends.append(backend)
        strict = flag("mode") == "blocking-strict"
        at_once = write

        def now(event: Event) -> bool:
            data = _limited(event, line, limit, name)
            written = data is None or at_once([data])
            if not written:
                metrics.ERRORS.add(name)
            # Of all stages only the first can still fail the request; upstream is as strict as that.
            return written or not strict or event.stage != "RequestReceived"

        self._sinks.append(now)

    async def close(self) -> None:
        """Hand on what is left."""
        for batch in self.batches:
            await batch.close()
        for backend in self._backends:
            await backend.close()


def auditing(options: argparse.Namespace) -> Auditing | None:
    """Set up auditing from the flags. Raises ValueError or OSError."""
    path, webhook = options.audit_log_path, options.audit_webhook_config_file
    if not options.audit_policy_file:
        if path or webhook:
            log.warning("no audit policy file was given: no events will be recorded")
        return None
    evaluator = PolicyEvaluator(policy.read(options.audit_policy_file))
    if not path and not webhook:
        return None
    made = Auditing(evaluator)
    if path:
        file = None
        if path != "-":
            file = RotatingFile(
                Path(path),
                megabytes=options.audit_log_maxsize,
                days=options.audit_log_maxage,
                backups=options.audit_log_maxbackup,
                compress=options.audit_log_compress,
            )
        backend = LogBackend(file)
        made.add("log", backend, backend.write, options)
    if webhook:
        made.add(
            "webhook", WebhookBackend(webhook, initial_backoff=options.audit_webhook_initial_backoff), None, options
        )
    return made


def _liner(legacy: bool) -> Callable[[Event], bytes]:
    return (lambda event: legacy_line(event).encode()) if legacy else encode


def _limited(event: Event, line: Callable[[Event], bytes], limit: int, name: str) -> bytes | None:
    """An event that is too large loses its objects; if it still is, it is dropped."""
    data = line(event)
    if not limit or len(data) <= limit:
        return data
    small = msgspec.structs.replace(
        event,
        request_object=None,
        response_object=None,
        annotations={**event.annotations, _TRUNCATED: "true"},
    )
    data = line(small)
    if len(data) <= limit:
        return data
    metrics.ERRORS.add(name)
    log.warning("audit event %s is too large and was dropped", event.audit_id)
    return None
