"""Which controllers run, and that they run together."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess

import pytest
from waiting import wait_for

import tools
from pybernetes.api.core.v1 import ConfigMap
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client import component, config
from pybernetes.client.checks import Checks
from pybernetes.client.client import Client
from pybernetes.client.clock import SystemClock
from pybernetes.client.events import EventBroadcaster
from pybernetes.client.informers import InformerFactory
from pybernetes.client.keys import Key
from pybernetes.client.metrics import Registry
from pybernetes.component import tasks
from pybernetes.component.watchdog import LoopWatchdog
from pybernetes.controllers import manager
from pybernetes.controllers.base import Controller, ControllerContext
from pybernetes.controllers.command import _checks
from pybernetes.controllers.manager import ABSENT, REGISTRY, Manager, available, choose, load
from pybernetes.controllers.options import Options, parse

KNOWN = ["deployment-controller", "job-controller", "token-cleaner-controller"]


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("*", ["deployment-controller", "job-controller"]),
        ("*,-job-controller", ["deployment-controller"]),
        ("-job,*", ["deployment-controller"]),
        ("*,tokencleaner", KNOWN),
        ("job", ["job-controller"]),
        ("job,-job,deployment", ["deployment-controller", "job-controller"]),
        ("", []),
    ],
)
def test_the_flag_names_controllers_by_name_or_alias_and_the_first_word_about_one_counts(
    wanted: str, chosen: list[str]
) -> None:
    assert choose([word for word in wanted.split(",") if word], KNOWN) == chosen


@pytest.mark.parametrize("word", ["nonsense", "-nonsense", "statefulset"])
def test_an_unknown_controller_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is not in the list of known controllers"):
        choose([word], KNOWN)


def test_controllers_of_upstream_that_are_not_here_can_be_switched_off_but_not_on() -> None:
    assert choose(["*", "-node-route-controller", "-route"], KNOWN) == choose(["*"], KNOWN)
    with pytest.raises(ValueError, match="'selinux-warning-controller' cannot be switched on: it is off"):
        choose(["selinux-warning-controller"], KNOWN)
    assert not ABSENT.keys() & REGISTRY.keys()


def test_every_controller_of_the_table_is_there() -> None:
    assert available() == list(REGISTRY)


def test_every_controller_can_be_loaded_and_knows_its_name() -> None:
    assert available()
    for name in available():
        assert load(name).name == name
    aliases = [entry.alias for entry in REGISTRY.values() if entry.alias]
    assert len(aliases) == len(set(aliases))


def test_flags_have_upstreams_names_and_defaults() -> None:
    assert parse([]) == Options()
    options = parse(
        [
            "--controllers=*,-job",
            "--leader-elect=false",
            "--allocate-node-cidrs",
            "--cluster-cidr",
            "10.0.0.0/8",
            "--node-monitor-grace-period=1m30s",
            "--concurrent-gc-syncs=7",
            "--concurrent_rc_syncs=3",
            "--node-eviction-rate=0.5",
            "-v=2",
        ]
    )
    assert options.controllers == ("*", "-job")
    assert not options.leader_elect
    assert options.allocate_node_cidrs
    assert options.cluster_cidr == "10.0.0.0/8"
    assert options.node_monitor_grace_period == 90
    assert (options.concurrent_gc_syncs, options.concurrent_rc_syncs) == (7, 3)
    assert (options.node_eviction_rate, options.v) == (0.5, 2)


@pytest.mark.parametrize(
    "flag", ["--leader-elect=maybe", "--node-monitor-period=soon", "--nonsense", "--secure-port=x"]
)
def test_bad_flags_are_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([flag])
    assert "pyb controller-manager" in capsys.readouterr().err


class Broken(Controller[ConfigMap]):
    """Fails outside of its workers, as long as it is configured to."""

    name = "broken-controller"
    fails = True

    async def run(self) -> None:
        if self.fails:
            raise RuntimeError("broken")
        await super().run()


class Working(Controller[ConfigMap]):
    """Notes the names of what it was woken for."""

    name = "working-controller"
    kind = ConfigMap

    def setup(self) -> None:
        self.seen: list[str] = []

    async def reconcile(self, key: Key) -> float | None:
        self.seen.append(key.name)
        return None


async def test_a_controller_that_fails_is_shown_in_healthz_restarted_and_stops_no_other(
    server: tools.ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    classes: dict[str, type[Controller[ConfigMap]]] = {each.name: each for each in (Broken, Working)}
    monkeypatch.setattr(manager, "load", classes.__getitem__)
    monkeypatch.setattr(Broken, "fails", True)
    async with Client(config.load(server.kubeconfig)) as client:
        clock = SystemClock()
        context = ControllerContext(client, InformerFactory(client), EventBroadcaster(client, clock), clock)
        running = Manager(context, list(classes))
        checks = Checks(_checks(list(classes), running, None))
        task = asyncio.create_task(running.run())
        try:
            await asyncio.wait_for(running.started.wait(), 30)
            broken = "[-]broken-controller failed: reason withheld\n[+]working-controller ok\nhealthz check failed\n"
            await wait_for(lambda: checks.answer("/healthz") == (500, broken), "it is shown by its name")
            assert checks.answer("/healthz/broken-controller") == (500, "internal server error: broken\n")
            assert tasks.failures["broken-controller"] >= tasks.TOLERATED_FAILURES
            await client.create(ConfigMap(metadata=ObjectMeta(name="canary", namespace="default")))
            working = running.controllers["working-controller"]
            assert isinstance(working, Working)
            await wait_for(lambda: "canary" in working.seen, "the other controller works")
            Broken.fails = False
            restarted = [each for each in asyncio.all_tasks() if each.get_name() == "controllers: broken-controller"]
            assert len(restarted) == 1
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.wait([task])


async def test_health_is_public_and_metrics_need_permission(server: tools.ApiServer) -> None:
    from pybernetes.client.health import About, HealthServer, serving_tls
    from pybernetes.client.metrics import Registry

    pki = server.folder / "pki"
    healthy = True
    async with Client(config.load(server.kubeconfig)) as client:
        registry = Registry()
        registry.counter("things_total", "Things.").inc()
        checks = {"healthz": {"ping": lambda: True, "work": lambda: healthy}, "livez": {"ping": lambda: True}}
        about = About("kube-tester", lambda: {"b": "2", "a": "1"}, lambda: {"tester": {"kind": "Testing"}})
        health = HealthServer(registry, checks, client, about=about)
        tls = serving_tls(str(pki / "apiserver.crt"), str(pki / "apiserver.key"), str(pki / "ca.crt"))
        port = await health.start("127.0.0.1", 0, tls)

        async def ask(path: str, header: str = "", method: str = "GET", certificate: bool = False) -> tuple[int, str]:
            context = ssl.create_default_context(cafile=str(server.ca_file))
            if certificate:
                context.load_cert_chain(pki / "admin.crt", pki / "admin.key")
            reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
            writer.write(f"{method} {path} HTTP/1.1\r\nHost: x\r\n{header}\r\n".encode())
            answer = (await reader.read()).decode()
            writer.close()
            return int(answer.split(" ")[1]), answer.partition("\r\n\r\n")[2]

        assert await ask("/healthz") == (200, "ok")
        assert await ask("/livez?verbose") == (200, "[+]ping ok\nlivez check passed\n")
        assert await ask("/healthz/ping") == (200, "ok")
        healthy = False
        failed = "[+]ping ok\n[-]work failed: reason withheld\nhealthz check failed\n"
        assert await ask("/healthz") == (500, failed)
        assert await ask("/livez/ping") == (200, "ok")
        status, text = await ask("/metrics", certificate=True)
        assert status == 200
        assert "things_total 1\n" in text
        assert (await ask("/metrics", f"Authorization: Bearer {server.token}\r\n"))[0] == 200
        status, text = await ask("/metrics", "Authorization: Bearer wrong\r\n")
        assert (status, json.loads(text)["reason"]) == (401, "Unauthorized")
        for path in ("/nothing", "/readyz", "/healthz/nothing"):
            assert (await ask(path, certificate=True))[0] == 404
        status, text = await ask("/metrics/slis", certificate=True)
        assert 'kubernetes_healthcheck{name="work",type="healthz"} 0\n' in text
        assert 'kubernetes_healthchecks_total{name="work",status="success",type="healthz"} 1\n' in text
        assert 'kubernetes_healthchecks_total{name="ping",status="success",type="healthz"} 2\n' in text
        assert await ask("/configz", certificate=True) == (200, '{"tester":{"kind":"Testing"}}')
        accept = "Accept: application/json;as={};v=v1beta1;g=config.k8s.io\r\n"
        status, text = await ask("/flagz", accept.format("Flagz"), certificate=True)
        assert (status, json.loads(text)["flags"]) == (200, {"a": "1", "b": "2"})
        status, text = await ask("/statusz", accept.format("Statusz"), certificate=True)
        assert json.loads(text)["metadata"] == {"name": "kube-tester"}
        assert json.loads(text)["paths"] == ["/configz", "/flagz", "/healthz", "/livez", "/metrics"]
        assert (await ask("/statusz", accept.format("Flagz"), certificate=True))[0] == 406
        status, text = await ask("/flagz", certificate=True)
        assert text.startswith("\nkube-tester flagz\nWarning: This endpoint is not meant")
        assert (await ask("/healthz", method="POST"))[0] == 405
        await health.stop()


@pytest.mark.parametrize(
    ("refused", "words"),
    [
        (["--allocate-node-cidrs", "--cluster-cidr=nonsense"], "invalid CIDR address: nonsense"),
        (["--cidr-allocator-type=nonsense"], "invalid CIDR allocator type: nonsense"),
        (
            ["--enable-hostpath-provisioner"],
            "--enable-hostpath-provisioner: making volumes in folders of the host is not supported",
        ),
    ],
)
def test_a_flag_that_a_controller_refuses_is_one_line_and_exit_code_1(
    server: tools.ApiServer, refused: list[str], words: str
) -> None:
    flags = [f"--kubeconfig={server.kubeconfig}", "--leader-elect=false", "--secure-port=0"]
    command = [*tools.PYTHON, "controller-manager", *flags, *refused]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [f"pyb controller-manager: {words}"]


def test_metrics_show_the_event_loop_and_failures_of_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(component, "failures", {"deployment-controller": 3})
    registry, watchdog = Registry(), LoopWatchdog()
    watchdog.stalls, watchdog.max_lag = 2, 1.5
    component.add_process_metrics(registry, watchdog)
    text = registry.render().decode()
    assert "# TYPE pybernetes_task_failures_total counter\n" in text
    assert 'pybernetes_task_failures_total{task="deployment-controller"} 3\n' in text
    assert "pybernetes_event_loop_stalls_total 2\n" in text
    assert "pybernetes_event_loop_lag_seconds 1.5\n" in text
    assert "pybernetes_event_loop_lag_seconds 0\n" in registry.render().decode()
