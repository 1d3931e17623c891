"""Metrics of configuration files that are reloaded while the server runs, with upstream's names."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from time import time
from typing import TYPE_CHECKING

from .metrics import COLLECTORS
from .registry.server_context import server_name

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class Reloads:
    """One kind of configuration: `authorization`, `authentication` or `encryption`."""

    def __init__(self, kind: str, data: bytes) -> None:
        """`data` is what the file says at the start."""
        self._prefix = f"apiserver_{kind}_config_controller_"
        self._kind = kind
        self._hash = _hash(data)
        self._counts: dict[str, int] = {}
        self._times: dict[str, float] = {}
        COLLECTORS.append(self.collect)

    def succeeded(self, data: bytes) -> None:
        """This is used from now on."""
        self._hash = _hash(data)
        self._count("success")

    def failed(self) -> None:
        """The reload failed: the file's content is not used."""
        self._count("failure")

    def collect(self) -> Iterator[Metric]:
        """The families, for the library."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        server = _hash(server_name(socket.gethostname()).encode())
        labels = ("status", "apiserver_id_hash")
        reloads = CounterMetricFamily(
            f"{self._prefix}automatic_reloads",
            f"How often the {self._kind} configuration was read again.",
            labels=labels,
        )
        last = GaugeMetricFamily(
            f"{self._prefix}automatic_reload_last_timestamp_seconds", "When that was.", labels=labels
        )
        for status, count in self._counts.items():
            reloads.add_metric((status, server), count)
            last.add_metric((status, server), self._times[status])
        info = GaugeMetricFamily(
            f"{self._prefix}last_config_info", "Which configuration is used.", labels=("apiserver_id_hash", "hash")
        )
        info.add_metric((server, self._hash), 1)
        yield from (reloads, last, info)

    def _count(self, status: str) -> None:
        self._counts[status] = self._counts.get(status, 0) + 1
        self._times[status] = time()


def _hash(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}" if data else ""
