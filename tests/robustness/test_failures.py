"""The store fails under the server: a clear refusal, no silent loss, and back to work when the cause is gone."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from robustness.harness import CONFIGMAPS, Answer, Server, running
from store import tools
from store.tools import Etcd

from pybernetes.store import open_store
from tools import wait_until


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    with tools.small_disk(tmp_path / "small", 40) as folder:
        yield folder


def put(session: Any, name: str, size: int = 10) -> Answer:
    answer: Answer = session("POST", CONFIGMAPS, {"metadata": {"name": name}, "data": {"x": "x" * size}})
    return answer


def check_refusal(answer: Answer, word: str) -> None:
    """503 with a Status that says why."""
    assert answer.status == 503, answer
    assert (answer.json["kind"], answer.json["reason"]) == ("Status", "ServiceUnavailable")
    assert word in answer.json["message"], answer.json


def readiness(server: Server) -> Answer:
    return server.request("GET", "/readyz?verbose")


def listed(server: Server) -> dict[str, Any]:
    answer = server.request("GET", CONFIGMAPS)
    assert answer.status == 200, answer
    return {each["metadata"]["name"]: each for each in answer.json["items"]}


def check_one_line(code: int, said: str, *words: str) -> None:
    """A start that fails says why in one line."""
    assert code == 1, said
    assert said.startswith("pyb apiserver: "), said
    assert len(said.strip().splitlines()) == 1, said
    assert all(word in said for word in words), said


def test_a_full_disk_is_refused_with_503_until_there_is_room(small_disk: Path, tmp_path: Path, pki: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(24 << 20))
    server = Server(tmp_path / "server", pki, f"sqlite:///{small_disk}/store.db")
    with running(server), server.session() as session, server.session() as watching:
        start = session("GET", CONFIGMAPS).json["metadata"]["resourceVersion"]
        events = watching.events(f"{CONFIGMAPS}?watch=true&resourceVersion={start}")
        known = {}
        for number in range(1000):
            answer = put(session, f"big-{number}", 100_000)
            if answer.status != 201:
                break
            known[answer.json["metadata"]["name"]] = answer.json["metadata"]
        check_refusal(answer, "full")
        refused = f"big-{number}"
        check_refusal(put(session, refused, 100_000), "full")
        assert readiness(server).status == 500
        assert b"[-]etcd failed" in readiness(server).body
        assert session("GET", f"{CONFIGMAPS}/{refused}").status == 404
        assert {name: each["metadata"] for name, each in listed(server).items()} == known
        with ThreadPoolExecutor() as pool:
            rest = pool.submit(list, events)
            assert server.terminate() == 0, server.log.read_text()
        seen = [(each["type"], each["object"]["metadata"]) for each in rest.result()]  # it was ended, not cut
        assert seen
        assert seen == [("ADDED", each) for each in known.values()][: len(seen)]  # it can be resumed from the last

        # Started on a full disk it serves what is there, or says in one line why not.
        server.log.write_text("")
        server.spawn()
        wait_until(lambda: server.process and (server.process.poll() is not None or _answers(server)), "an outcome")
        assert server.process is not None
        if server.process.poll() is None:
            assert {name: each["metadata"] for name, each in listed(server).items()} == known
        else:
            check_one_line(server.process.returncode, server.log.read_text(), "full")
        server.kill()
        ballast.unlink()
        server.start()
        with server.session() as again:
            assert {name: each["metadata"] for name, each in listed(server).items()} == known
            assert put(again, refused, 100_000).status == 201
            assert readiness(server).status == 200


def test_a_disk_with_room_again_takes_writes_without_a_restart(small_disk: Path, tmp_path: Path, pki: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(28 << 20))
    server = Server(tmp_path / "server", pki, f"sqlite:///{small_disk}/store.db")
    with running(server), server.session() as session, server.session() as watching:
        events = watching.events(f"{CONFIGMAPS}?watch=true")
        count = 0
        while put(session, f"big-{count}", 100_000).status == 201:
            count += 1
        wait_until(lambda: readiness(server).status == 500, "readiness notices")
        ballast.unlink()
        wait_until(lambda: readiness(server).status == 200, "readiness notices the room")
        assert put(session, "after").status == 201
        names = []
        while not names or names[-1] != "after":  # the watch has lived on and missed nothing
            names.append(next(events)["object"]["metadata"]["name"])
        assert names == [f"big-{number}" for number in range(count)] + ["after"]


def _answers(server: Server) -> bool:
    try:
        return server.request("GET", "/readyz").status == 200
    except OSError:
        return False


@pytest.mark.parametrize("damage", ["garbage", "pages", "short"])
def test_a_damaged_database_is_refused_in_one_line_and_left_alone(tmp_path: Path, pki: Path, damage: str) -> None:
    path = tmp_path / "store.db"
    server = Server(tmp_path, pki, f"sqlite:///{path}")
    with running(server), server.session() as session:
        for number in range(20):
            assert put(session, f"c-{number}", 5000).status == 201
        assert server.terminate() == 0
    content = bytearray(path.read_bytes())
    match damage:
        case "garbage":
            content[:] = random.Random(7).randbytes(len(content))
        case "pages":
            content[4096:] = random.Random(7).randbytes(len(content) - 4096)
        case "short":
            del content[len(content) // 3 :]
    path.write_bytes(content)
    check_one_line(*server.run_to_end(), str(path))
    assert path.read_bytes() == bytes(content)


def test_a_database_in_use_is_refused_in_one_line_and_its_user_goes_on(tmp_path: Path, pki: Path) -> None:
    store = f"sqlite:///{tmp_path}/store.db"
    server = Server(tmp_path / "a", pki, store)
    with running(server), server.session() as session:
        assert put(session, "before").status == 201
        check_one_line(*Server(tmp_path / "b", pki, store).run_to_end(), "store.db", "in use by another process")
        assert put(session, "after").status == 201
        assert set(listed(server)) == {"before", "after"}


def test_a_folder_that_cannot_be_written_is_refused_in_one_line(tmp_path: Path, pki: Path) -> None:
    for folder in ("missing", "proc"):
        path = "/proc/store.db" if folder == "proc" else f"{tmp_path}/{folder}/store.db"
        check_one_line(*Server(tmp_path, pki, f"sqlite:///{path}").run_to_end(), path)


def test_a_port_in_use_is_refused_in_one_line(tmp_path: Path, pki: Path) -> None:
    server = Server(tmp_path, pki, f"sqlite:///{tmp_path}/store.db")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", server.port))
        taken.listen()
        check_one_line(*server.run_to_end(), str(server.port), "address already in use")


def test_an_object_of_another_program_in_etcd_keeps_only_itself_from_being_served(
    tmp_path: Path, pki: Path, own_etcd: Etcd
) -> None:
    async def fill() -> None:
        store = open_store(own_etcd.url)
        await store.start()
        await store.create("/registry/configmaps/default/foreign", b"k8s\x00\n\x0f\n\x02v1")
        await store.close()

    asyncio.run(fill())
    server = Server(tmp_path, pki, own_etcd.url)
    with running(server), server.session() as session:
        assert put(session, "own").status == 201
        assert [each["metadata"]["name"] for each in session("GET", CONFIGMAPS).json["items"]] == ["own"]


def test_etcd_away_and_back(tmp_path: Path, pki: Path, own_etcd: Etcd) -> None:
    server = Server(tmp_path / "a", pki, own_etcd.url)
    late = Server(tmp_path / "b", pki, own_etcd.url)
    with running(server), server.session() as session, server.session() as watching, ThreadPoolExecutor() as pool:
        made = put(session, "before").json
        revision = made["metadata"]["resourceVersion"]
        events = watching.events(f"{CONFIGMAPS}?watch=true&resourceVersion={revision}")
        own_etcd.kill()
        started = time.monotonic()
        ready = readiness(server)
        assert ready.status == 500
        assert b"[-]etcd failed" in ready.body
        assert time.monotonic() - started < 20
        # From here on the server knows: before, the outcome of a write would be unknown.
        starting = pool.submit(late.run_to_end)
        writing = pool.submit(put, session, "meanwhile")
        reading = pool.submit(server.request, "GET", CONFIGMAPS)
        # Requests that accept any version are served from the cache.
        remembered = server.request("GET", f"{CONFIGMAPS}?resourceVersion=0")
        assert remembered.json["items"][0]["metadata"]["name"] == "before"
        check_refusal(writing.result(), "etcd does not answer")
        check_refusal(reading.result(), "etcd does not answer")
        check_one_line(*starting.result(), f"etcd does not answer at {own_etcd.url}")
        waiting = pool.submit(put, session, "waits")
        own_etcd.start()
        assert waiting.result().status == 201  # it came back in time
        wait_until(lambda: readiness(server).status == 200, "the server is ready again")
        found = listed(server)
        assert set(found) == {"before", "waits"}
        assert found["before"]["metadata"] == made["metadata"]
        event = next(events)  # the same watch as before
        assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "waits")


def test_sigterm_is_obeyed_while_etcd_is_away(tmp_path: Path, pki: Path, own_etcd: Etcd) -> None:
    with running(Server(tmp_path, pki, own_etcd.url, "--advertise-address=192.0.2.1")) as server:
        own_etcd.kill()
        started = time.monotonic()
        assert server.terminate() == 0
        assert time.monotonic() - started < 20
