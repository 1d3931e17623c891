"""Numbers in the format that Prometheus reads: checked by its own parser."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from pybernetes.client.clock import FakeClock
from pybernetes.client.metrics import GaugeFunction, Registry
from pybernetes.client.ratelimit import TokenBucket


def test_prometheus_reads_what_was_counted() -> None:
    registry = Registry()
    registry.counter("things_total", "Things.", ("kind",)).inc('a "b"\n\\c', by=2)
    registry.counter("things_total", "Things.", ("kind",)).inc('a "b"\n\\c')
    registry.gauge("depth", "Depth.").set(1.5)
    registry.add(GaugeFunction("asked", "Asked.", ("x",), lambda: [(("1",), 7)]))
    times = registry.histogram("time_seconds", "Time.", (0.1, 1.0), ("verb",))
    for measure in (0.1, 0.5, 3):
        times.observe(measure, "get")
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(registry.render().decode())
        for sample in family.samples
    }
    assert found == {
        ("things_total", 'a "b"\n\\c'): 3,
        ("depth",): 1.5,
        ("asked", "1"): 7,
        ("time_seconds_bucket", "get", "0.1"): 1,
        ("time_seconds_bucket", "get", "1"): 2,
        ("time_seconds_bucket", "get", "+Inf"): 3,
        ("time_seconds_sum", "get"): 3.6,
        ("time_seconds_count", "get"): 3,
    }


def test_a_bucket_gives_its_burst_at_once_and_the_rest_over_time() -> None:
    clock = FakeClock()
    bucket = TokenBucket(qps=2, burst=3, clock=clock)
    assert [bucket.try_take() for _ in range(4)] == [True, True, True, False]
    clock.advance(0.5)
    assert [bucket.try_take() for _ in range(2)] == [True, False]
    clock.advance(100)
    assert [bucket.try_take() for _ in range(4)] == [True, True, True, False]


def test_a_metric_that_cannot_be_read_costs_no_other() -> None:
    def fails() -> list[tuple[tuple[str, ...], float]]:
        raise OSError("Too many open files")

    registry = Registry()
    registry.counter("a", "A.").inc()
    registry.add(GaugeFunction("b", "B.", (), fails))
    registry.counter("c", "C.").inc()
    lines = registry.render().decode().splitlines()
    assert [line for line in lines if not line.startswith("#")] == ["a 1", "c 1"]
