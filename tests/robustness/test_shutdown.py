"""SIGTERM: what is under way is finished, watches end, nothing new comes in, and it does not take long."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from robustness.harness import CONFIGMAPS, TOKEN, Server, running

from tools import wait_until

MB = 1 << 20

AT_ONCE = 20.0  # seconds; requests in flight have a minute
# The server with a disk that hangs as long as a file is there, so that writes are in flight when SIGTERM comes.
SLOW_DISK = """
import os, sys, time
from pybernetes.apiserver.command import main
from pybernetes.store import sqlite, sqlite_file
sqlite.syncer_for = lambda log, sync: sqlite.ThreadSyncer(sync)  # a kernel's own sync cannot be slowed down
sqlite.Patience = lambda writing: None  # the loop would wait for the first
original = sqlite_file.SQLiteFile.sync
def slowly(self):
    while os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    original(self)
sqlite_file.SQLiteFile.sync = slowly
sys.exit(main(sys.argv[2:]))
"""


def test_an_idle_server_stops_at_once_with_exit_code_0(tmp_path: Path, pki: Path) -> None:
    with running(Server(tmp_path, pki, f"sqlite:///{tmp_path}/store.db")) as server, server.session() as idle:
        assert idle("GET", "/version").status == 200
        started = time.monotonic()
        assert server.terminate() == 0
        assert time.monotonic() - started < AT_ONCE
        with pytest.raises(OSError, match="refused"):
            server.request("GET", "/version")


def test_writes_in_flight_are_acknowledged_and_kept_and_new_connections_refused(tmp_path: Path, pki: Path) -> None:
    slow = tmp_path / "slow"
    server = Server(tmp_path, pki, f"sqlite:///{tmp_path}/store.db")
    server.command = [sys.executable, "-P", "-c", SLOW_DISK, str(slow), *server.command[5:]]
    with running(server):
        sessions = [server.session() for _ in range(20)]
        for session in sessions:
            assert session("GET", "/version").status == 200
        slow.touch()
        with ThreadPoolExecutor(20) as pool:
            writing = [
                pool.submit(session, "POST", CONFIGMAPS, {"metadata": {"name": f"late-{number}"}})
                for number, session in enumerate(sessions)
            ]
            wait_until(
                lambda: server.metric("apiserver_current_inflight_requests", request_kind="mutating") == 20, "all"
            )
            assert server.process
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not listens(server), "it does not listen any more")
            assert not any(each.done() for each in writing)
            slow.unlink()
            answers = [each.result() for each in writing]
        assert server.process.wait(30) == 0
        assert {each.status for each in answers} == {201}
        assert {each.headers["Connection"] for each in answers} == {"close"}
        server.start()
        found = {each["metadata"]["name"] for each in server.request("GET", CONFIGMAPS).json["items"]}
        assert found == {f"late-{number}" for number in range(20)}


def listens(server: Server) -> bool:
    try:
        socket.create_connection(("127.0.0.1", server.port), 1).close()
    except OSError:
        return False
    return True


def test_a_large_answer_that_the_client_is_reading_arrives_whole(tmp_path: Path, pki: Path) -> None:
    with running(Server(tmp_path, pki, "memory://")) as server:
        with server.session() as session:
            for number in range(40):
                body = {"metadata": {"name": f"big-{number}"}, "data": {"x": "x" * (MB // 2)}}
                assert session("POST", CONFIGMAPS, body).status == 201
        with server.connect() as connection:
            request = f"GET {CONFIGMAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
            connection.sendall(request.encode())
            data = bytearray(connection.recv(1000))
            assert server.process
            server.process.send_signal(signal.SIGTERM)
            wait_until(lambda: not listens(server), "it does not listen any more")
            while part := connection.recv(MB):
                data += part
                time.sleep(0.0005)
        head, _, body = bytes(data).partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        assert len(json.loads(body)["items"]) == 40
        assert server.process.wait(30) == 0


def test_watches_end_cleanly_whatever_they_wait_for(tmp_path: Path, pki: Path) -> None:
    server = Server(tmp_path, pki, "memory://")
    with running(server):
        sessions = [server.session() for _ in range(6)]
        queries = ["", "&resourceVersion=0", "&allowWatchBookmarks=true", "&timeoutSeconds=300", "&labelSelector=a=b"]
        queries.append("&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
        watches = [
            session.events(f"{CONFIGMAPS}?watch=true{query}") for session, query in zip(sessions, queries, strict=True)
        ]
        assert server.request("POST", CONFIGMAPS, {"metadata": {"name": "one"}}).status == 201
        started = time.monotonic()
        assert server.terminate() == 0
        assert time.monotonic() - started < AT_ONCE
        for watch in watches:
            assert "ERROR" not in [each["type"] for each in watch]  # and reading to the end does not raise


def test_a_watch_that_comes_while_the_server_drains_ends_too(tmp_path: Path, pki: Path) -> None:
    server = Server(tmp_path, pki, "memory://")
    with running(server), server.session() as waiting, server.session() as watching:
        assert watching("GET", "/version").status == 200
        with ThreadPoolExecutor() as pool:
            # A list that waits for a revision to come keeps the server draining for up to three seconds.
            slow = pool.submit(waiting, "GET", f"{CONFIGMAPS}?resourceVersion=999999999")
            wait_until(lambda: server.metric("apiserver_current_inflight_requests") == 2, "it waits")
            # The watch is on its way when the signal comes.
            watching.connection.putrequest("GET", f"{CONFIGMAPS}?watch=true&resourceVersion=0")
            watching.connection.putheader("Authorization", f"Bearer {TOKEN}")
            started = time.monotonic()
            assert server.process
            server.process.send_signal(signal.SIGTERM)
            try:
                watching.connection.endheaders()
                watching.connection.getresponse().read()
            except (OSError, http.client.HTTPException):
                pass  # it came too late and was refused
            assert server.process.wait(30) == 0
            assert time.monotonic() - started < AT_ONCE
            assert slow.result().status == 504


def test_a_client_that_takes_nothing_holds_the_end_up_for_seconds_only(tmp_path: Path, pki: Path) -> None:
    with running(Server(tmp_path, pki, "memory://")) as server:
        with server.session() as session:
            for number in range(20):
                body = {"metadata": {"name": f"big-{number}"}, "data": {"x": "x" * (MB // 2)}}
                assert session("POST", CONFIGMAPS, body).status == 201
        with server.connect() as stuck:
            request = f"GET {CONFIGMAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
            stuck.sendall(request.encode())
            assert stuck.recv(10)
            started = time.monotonic()
            assert server.terminate() == 0
            assert time.monotonic() - started < AT_ONCE


def test_readiness_fails_during_the_delay_while_requests_are_served(tmp_path: Path, pki: Path) -> None:
    with running(Server(tmp_path, pki, "memory://", "--shutdown-delay-duration=4s")) as server:
        assert server.process
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: server.request("GET", "/readyz").status == 500, "it is not ready")
        assert server.request("GET", "/livez").status == 200
        assert server.request("POST", CONFIGMAPS, {"metadata": {"name": "late"}}).status == 201
        assert server.process.wait(30) == 0


def test_a_second_signal_ends_it_at_once(tmp_path: Path, pki: Path) -> None:
    with running(Server(tmp_path, pki, "memory://", "--shutdown-delay-duration=1m")) as server:
        assert server.process
        server.process.send_signal(signal.SIGTERM)
        wait_until(lambda: server.request("GET", "/readyz").status == 500, "it has heard the first")
        assert server.process.poll() is None
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(30) == 1
