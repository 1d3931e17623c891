"""Prometheus metrics of one mount, with the names that JuiceFS gives its own."""

from __future__ import annotations

import logging
import os
import threading
import time
from errno import EADDRINUSE
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.mount_options import METRICS
from pybernetes.objectfs.volume import Volume

log = logging.getLogger(__name__)
# Upper bounds of the durations that operations are counted by, in seconds.
BOUNDS = (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


class Metrics:
    """Counts operations; figures of caches and stores are read when they are asked for."""

    def __init__(self, volume: Volume) -> None:
        self._volume, self._started = volume, time.time()
        self._lock = threading.Lock()
        self._counts: dict[str, list[int]] = {}
        self._seconds: dict[str, float] = {}
        self._errors: dict[str, int] = {}

    def observe(self, name: str, seconds: float, error: int) -> None:
        """An operation has ended."""
        with self._lock:
            counts = self._counts.setdefault(name, [0] * (len(BOUNDS) + 1))
            for place, bound in enumerate(BOUNDS):
                if seconds <= bound:
                    counts[place] += 1
                    break
            else:
                counts[-1] += 1
            self._seconds[name] = self._seconds.get(name, 0.0) + seconds
            if error:
                self._errors[name] = self._errors.get(name, 0) + 1

    def text(self) -> str:
        """The metrics in Prometheus's text format."""
        volume = self._volume
        labels = f'vol_name="{volume.format.name}"'
        lines: list[str] = []

        def add(name: str, kind: str, value: float, more: str = "") -> None:
            head = f"# TYPE objectfs_{name} {kind}"
            if head not in lines:
                lines.append(head)
            lines.append(f"objectfs_{name}{{{labels}{more}}} {value}")

        add("uptime", "gauge", round(time.time() - self._started, 3))
        add("memory", "gauge", _resident())
        try:
            _, used, _, inodes = volume.statfs()
            add("used_space", "gauge", used)
            add("used_inodes", "gauge", inodes)
        except OSError:
            pass  # the database is away; the rest is still worth showing
        if volume.cache is not None:
            add("blockcache_bytes", "gauge", volume.cache.used)
            add("blockcache_hits", "counter", volume.cache.hits)
            add("blockcache_miss", "counter", volume.cache.misses)
        add("fuse_read_bytes", "counter", volume.bytes_read)
        add("fuse_written_bytes", "counter", volume.bytes_written)
        counters = volume.blocks.counters
        add("object_upload_bytes", "counter", counters.uploaded)
        add("object_download_bytes", "counter", counters.downloaded)
        add("object_request_errors", "counter", counters.errors)
        for name, count in sorted(counters.requests.items()):
            add("object_requests", "counter", count, f',method="{name}"')
        for name, seconds in sorted(counters.seconds.items()):
            add("object_request_seconds", "counter", round(seconds, 6), f',method="{name}"')
        add("staging_blocks", "gauge", sum(1 for _ in volume.writer.inodes()))
        self._durations(lines, labels)
        return "\n".join(lines) + "\n"

    def _durations(self, lines: list[str], labels: str) -> None:
        with self._lock:
            counts = {name: list(each) for name, each in self._counts.items()}
            seconds, errors = dict(self._seconds), dict(self._errors)
        lines.append("# TYPE objectfs_fuse_ops_durations_seconds histogram")
        name = "objectfs_fuse_ops_durations_seconds"
        for operation, each in sorted(counts.items()):
            total = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), each, strict=True):
                total += count
                lines.append(f'{name}_bucket{{{labels},method="{operation}",le="{bound}"}} {total}')
            lines.append(f'{name}_sum{{{labels},method="{operation}"}} {seconds[operation]:.6f}')
            lines.append(f'{name}_count{{{labels},method="{operation}"}} {total}')
        lines.append("# TYPE objectfs_fuse_ops_errors counter")
        for operation, count in sorted(errors.items()):
            lines.append(f'objectfs_fuse_ops_errors{{{labels},method="{operation}"}} {count}')


def serve_metrics(metrics: Metrics, address: str) -> ThreadingHTTPServer:
    """Answers GET /metrics at HOST:PORT until `shutdown` is called."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path != "/metrics":
                self.send_error(404)
                return
            body = metrics.text().encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    host, _, port = address.rpartition(":")
    try:
        try:
            server = ThreadingHTTPServer((host.strip("[]") or "0.0.0.0", int(port)), Handler)
        except OSError as error:
            if error.errno != EADDRINUSE or address != METRICS:
                raise
            # Another mount of this machine has the usual port.
            server = ThreadingHTTPServer((host, 0), Handler)
    except (OSError, ValueError, OverflowError) as error:
        raise ObjectFSError(f"metrics address {address!r}: {error}") from None
    log.info("Prometheus metrics listening on %s:%d", host, server.server_port)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, name="objectfs-metrics", daemon=True).start()
    return server


def _resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
