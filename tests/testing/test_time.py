"""The time of a cluster: hours pass in moments, in order, with all that follows from them."""

from __future__ import annotations

import time

import pytest
from testing.manifests import cron_job

from pybernetes.testing.cluster import Cluster


def test_a_cron_job_runs_at_every_tenth_minute_of_half_an_hour(test_cluster: Cluster) -> None:
    test_cluster.client.create(cron_job("tick", "*/10 * * * *"))
    test_cluster.clock.advance(minutes=30)
    jobs = test_cluster.client.list("jobs")
    assert len(jobs) == 3
    stamp = "batch.kubernetes.io/cronjob-scheduled-timestamp"
    assert len({job["metadata"]["annotations"][stamp][14:16] for job in jobs}) == 3
    assert all(job["status"].get("succeeded") == 1 for job in jobs)
    node = test_cluster.client.list("nodes")[0]
    assert {each["status"] for each in node["status"]["conditions"] if each["type"] == "Ready"} == {"True"}


def test_a_finished_job_is_removed_after_its_ttl(test_cluster: Cluster) -> None:
    client = test_cluster.client
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}]}
    spec = {"ttlSecondsAfterFinished": 600, "template": {"spec": pod}}
    client.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once"}, "spec": spec})
    client.wait_for("jobs", "once", "Complete")
    test_cluster.clock.advance(minutes=9)
    assert client.list("jobs")
    test_cluster.clock.advance(minutes=2)
    assert not client.list("jobs")


def test_time_does_not_go_back(test_cluster: Cluster) -> None:
    with pytest.raises(ValueError, match="restore a snapshot"):
        test_cluster.clock.advance(-1)


def test_with_autojump_a_test_waits_for_nothing() -> None:
    with Cluster(autojump=True) as cluster:
        began = time.monotonic()
        cluster.client.create(cron_job("tick", "*/10 * * * *"))
        cluster.client.wait_for("cronjobs", "tick", lambda each: each.get("status", {}).get("lastSuccessfulTime"))
        assert cluster.clock.now() - time.time() > 0
        assert time.monotonic() - began < 60


def test_a_restored_cluster_has_the_time_of_its_snapshot(test_cluster: Cluster) -> None:
    snapshot = test_cluster.snapshot()
    test_cluster.clock.advance(minutes=30)
    test_cluster.restore(snapshot)
    assert abs(test_cluster.clock.now() - time.time()) < 900
