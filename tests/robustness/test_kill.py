"""SIGKILL at random moments, under writers and a watch: nothing acknowledged is lost, nothing is seen twice."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from robustness.crowd import Crowd
from robustness.harness import Server
from store.tools import Etcd


def killed_under_writers(server: Server, rounds: int, seed: int) -> Crowd:
    """The server is killed while writers write, or while it starts; after each start all must be well."""
    server.start()
    crowd = Crowd(server, 4, seed)
    try:
        for _ in range(rounds):
            if crowd.random.random() < 0.25:  # it does not always live until it is ready
                server.kill()
                server.spawn()
                time.sleep(crowd.random.uniform(0.0, 0.7))
            else:
                crowd.begin()
                time.sleep(crowd.random.uniform(0.01, 0.5))
            server.kill()
            crowd.end()
            server.start()
            crowd.verify()
        crowd.begin()
        time.sleep(0.1)
        crowd.end()
        crowd.verify()
        crowd.finish()
    finally:
        server.kill()
    server.check_log()
    return crowd


def report(crowd: Crowd) -> None:
    acknowledged = sum(len(each.acknowledged) for each in crowd.writers)
    print(
        f"{acknowledged} acknowledged writes, {len(crowd.watcher.events)} events, {crowd.watcher.resumed} resumptions"
    )


def test_sqlite_keeps_what_it_acknowledged_when_the_server_is_killed_12_times(
    tmp_path: Path, pki: Path, run_seed: int
) -> None:
    server = Server(tmp_path, pki, f"sqlite:///{tmp_path}/store.db")
    report(killed_under_writers(server, 12, run_seed))


@pytest.mark.soak
def test_sqlite_keeps_what_it_acknowledged_when_the_server_is_killed_100_times(
    tmp_path: Path, pki: Path, run_seed: int
) -> None:
    server = Server(tmp_path, pki, f"sqlite:///{tmp_path}/store.db")
    report(killed_under_writers(server, 100, run_seed))


@pytest.mark.parametrize("rounds", [4, pytest.param(30, marks=pytest.mark.soak)])
def test_etcd_keeps_what_was_acknowledged_when_the_server_is_killed(
    tmp_path: Path, pki: Path, own_etcd: Etcd, rounds: int, run_seed: int
) -> None:
    report(killed_under_writers(Server(tmp_path, pki, own_etcd.url), rounds, run_seed))


@pytest.mark.parametrize("rounds", [3, pytest.param(30, marks=pytest.mark.soak)])
def test_nothing_is_lost_or_repeated_when_etcd_is_killed_under_a_server_that_lives_on(
    tmp_path: Path, pki: Path, own_etcd: Etcd, rounds: int, run_seed: int
) -> None:
    server = Server(tmp_path, pki, own_etcd.url)
    server.start()
    crowd = Crowd(server, 4, run_seed)
    try:
        for _ in range(rounds):
            crowd.begin()
            time.sleep(crowd.random.uniform(0.05, 0.5))
            own_etcd.kill()
            own_etcd.start()
            own_etcd.wait()
            time.sleep(crowd.random.uniform(0.0, 0.3))
            crowd.end()
            server.wait()
            crowd.verify()
        crowd.finish()
        assert crowd.watcher.resumed == 0  # clients did not notice
    finally:
        server.kill()
    server.check_log()
    report(crowd)
