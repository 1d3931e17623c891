"""Odd objects of every kind, with watches on every resource, beside ordinary work that must go on.

Short here; `--soak` goes on for an hour (PYB_SOAK_SECONDS), from a seed that it prints.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from fuzz.journey import STORED
from node.cluster import COMPONENTS, Cluster
from poison import custom, objects
from poison.canaries import Canaries
from poison.server import TABLE, Requests, Watches

from pybernetes.client import config
from pybernetes.cluster.node import plan
from tools import ROOT, wait_until

SHORT = 400
"""Objects in the ordinary run: about four of each kind."""
SOAK = float(os.environ.get("PYB_SOAK_SECONDS", "3600"))
SLOWER = 3.0
"""A canary may take so many times its quiet time."""
GRACE = 10.0
"""Seconds on top of that, because other tests run beside this one and pods are started one after another."""
LONGEST_VIEW = 600.0
"""Seconds for kubectl to show everything."""
BUSY = 0.5
"""Share of a core that a component may use once nothing changes any more."""
TRACEBACK = re.compile(r"^Traceback \(most recent call last\)", re.MULTILINE)


@pytest.fixture(scope="module")
def poisoned() -> Iterator[Cluster]:
    """A cluster of its own, with a node of our runtime."""
    if reason := plan.obstacle("embedded"):
        pytest.skip(f"no node: {reason}")
    with (
        tempfile.TemporaryDirectory(prefix="pyb-") as folder,
        Cluster(Path(folder), f"x{os.getpid()}", runtime="embedded") as cluster,
    ):
        yield cluster


def test_odd_objects_stop_nothing(poisoned: Cluster) -> None:
    storm(poisoned, seed=1, count=SHORT, seconds=600.0)


@pytest.mark.soak
def test_odd_objects_stop_nothing_for_an_hour(poisoned: Cluster) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    storm(poisoned, seed=seed, count=1 << 30, seconds=SOAK)


def storm(cluster: Cluster, seed: int, count: int, seconds: float) -> None:
    access = config.load(cluster.environment["KUBECONFIG"])
    requests, sender = Requests(access), Requests(access)
    canaries = Canaries(cluster, requests)
    canaries.prepare()
    canaries.run()  # once to warm up
    quiet = canaries.run()
    before = pids(cluster)
    sender("POST", "/api/v1/namespaces", {"metadata": {"name": objects.NAMESPACE}})
    made = define(sender)
    paths = [objects.collection(each) for each in STORED if "watch" in each.verbs] + [made]
    slow: list[str] = []
    with Watches(access, paths) as watches:
        wait_until(lambda: watches.begun == 2 * len(paths), "all watches have begun")
        for body in custom.objects():
            sender("POST", f"{made.replace('/v1/', f'/v1/namespaces/{objects.NAMESPACE}/')}", body)
        deadline = time.monotonic() + seconds
        for number, odd in enumerate(itertools.islice(objects.sequence(seed), count)):
            send(sender, odd)
            if number % 200 == 199:
                for path in paths:
                    sender("GET", path, accept=TABLE)
                for name, took in canaries.run().items():
                    if took > SLOWER * quiet[name] + GRACE:
                        slow.append(f"{name}: {took:.1f} s, quiet {quiet[name]:.1f} s, after {number + 1} objects")
            if time.monotonic() > deadline:
                break
        print(f"{sender.codes} {quiet} {watches.events.total()} events")
        shown(cluster)
        assert not sender.faults, "\n".join(sender.faults[:10])
        assert not requests.faults, "\n".join(requests.faults[:10])
        assert not watches.ended, "\n".join(watches.ended[:10])
    assert not slow, "\n".join(slow)
    assert sender.codes[201] > sender.codes.total() / 20, f"too few objects are accepted: {sender.codes}"
    assert pids(cluster) == before, "a component was restarted"
    idle(before)
    tracebacks(cluster)


def define(sender: Requests) -> str:
    """Make the custom resource with all columns that the server takes; the path of its objects."""
    body = custom.definition()
    version = body["spec"]["versions"][0]
    accepted = []
    for column in custom.COLUMNS:
        version["additionalPrinterColumns"] = [*accepted, column]
        path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        if sender("POST", f"{path}?dryRun=All", body)[0] == 201:
            accepted.append(column)
    version["additionalPrinterColumns"] = accepted
    assert sender("POST", path, body)[0] == 201
    made = f"/apis/{custom.GROUP}/{custom.VERSION}/{custom.PLURAL}"
    wait_until(lambda: sender("GET", made)[0] == 200, "the custom resource is served")
    return made


def send(sender: Requests, odd: objects.Odd) -> None:
    """Create the object, give it its status, read it as a table, and patch a label."""
    code, made = sender("POST", odd.collection, odd.body)
    if code != 201:
        return
    path = f"{odd.collection}/{odd.body['metadata']['name']}"
    if odd.status is not None:
        sender("PUT", f"{path}/status", {**made, "status": odd.status})
    sender("GET", path, accept=TABLE)


def shown(cluster: Cluster) -> None:
    """kubectl shows all objects of all kinds, as a table and in full."""
    kinds = {(each.group, each.plural): each for each in STORED if "list" in each.verbs}.values()
    names = [f"{each.plural}.{each.version}.{each.group}" if each.group else each.plural for each in kinds]
    names.append(f"{custom.PLURAL}.{custom.VERSION}.{custom.GROUP}")
    for words in (("get", "-o", "wide"), ("describe",)):
        done = subprocess.run(
            [
                sys.executable,
                "-I",
                "-S",
                ROOT / "src/pybernetes/kubectl/entry.py",
                *words,
                "--all-namespaces",
                ",".join(names),
            ],
            env=cluster.environment,
            capture_output=True,
            text=True,
            timeout=LONGEST_VIEW,
            check=False,
        )
        assert done.returncode == 0, f"kubectl {words[0]}: {done.stderr[-2000:]}"
        faults = [line for line in done.stderr.splitlines() if not line.startswith("Warning: ")]
        assert not faults, "\n".join(faults[:10])


def pids(cluster: Cluster) -> dict[str, int | None]:
    """The processes that must be the same afterwards."""
    return {name: cluster.find(name) for name in (*COMPONENTS, "runtime", "kubelet")}


def idle(processes: dict[str, int | None]) -> None:
    """Wait until no component is busy: retries back off, and what was begun ends."""
    hertz = os.sysconf("SC_CLK_TCK")

    def used() -> dict[str, float]:
        fields = {
            name: Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split() for name, pid in processes.items()
        }
        return {name: (int(each[11]) + int(each[12])) / hertz for name, each in fields.items()}

    def quiet() -> bool:
        began, first = time.monotonic(), used()
        wait_until(lambda: time.monotonic() - began > 2.0, "a while passes", every=0.1)
        took = time.monotonic() - began
        busy.clear()
        busy.update(
            {name: (now - first[name]) / took for name, now in used().items() if now - first[name] > BUSY * took}
        )
        return not busy

    busy: dict[str, float] = {}
    try:
        wait_until(quiet, "all components are idle", 120.0)
    except AssertionError:
        raise AssertionError(f"busy without need (share of a core): {busy}") from None


def tracebacks(cluster: Cluster) -> None:
    """No component's log has a traceback."""
    found = {}
    for path in [*cluster.layout.data.glob("logs/*"), *cluster.layout.data.glob("nodes/*/**/*.log")]:
        if path.is_file():
            text = path.read_text(errors="replace")
            if match := TRACEBACK.search(text):
                found[path.name] = text[max(0, match.start() - 300) : match.start() + 3000]
    assert not found, "\n\n".join(f"{name}: {text}" for name, text in found.items())
