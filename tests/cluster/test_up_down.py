"""`pyb up`, `down`, `status`, `kubeconfig`: real processes, a home folder of their own."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
from pathlib import Path

import pytest
import yaml
from cluster.shell import Shell

import tools
from pybernetes.cluster.errors import ClusterError
from pybernetes.cluster.layout import Layout, Record
from pybernetes.cluster.node import containerd, plan, programs
from pybernetes.cluster.readiness import Probe
from pybernetes.cluster.rootless.rights import Rights
from pybernetes.store.etcd import EtcdStore

FOREIGN = {"clusters": [{"name": "other", "cluster": {"server": "https://203.0.113.1"}}], "current-context": "other"}


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def ready(server: object, pki: Path) -> bool:
    port = int(str(server).rpartition(":")[2])
    return Probe("127.0.0.1", port, pki)()


def test_up_gives_a_ready_cluster_and_a_context_and_down_takes_both_away(pyb: Shell) -> None:
    shown = pyb.up().stdout
    assert "is ready after" in shown
    assert "./pyb down" in shown
    assert "\x1b" not in shown
    data = pyb.home / ".pybernetes" / "pybernetes"
    status = pyb.status()
    assert (status["running"], status["ready"], status["store"], status["context"]) == (
        True,
        True,
        "memory",
        "pybernetes",
    )
    assert pyb.contexts() == ["pybernetes"]
    assert pyb("kubeconfig").stdout == f"{data / 'kubeconfig'}\n"
    processes = pyb.processes()
    assert set(processes) == {"supervisor", "apiserver", "controller-manager", "scheduler"}
    sessions = {os.getsid(process.pid) for process in processes.values()}
    assert sessions == {processes["supervisor"].pid}

    assert "stopped" in pyb("down").stdout
    assert not any(process.alive for process in processes.values())
    assert pyb.contexts() == []
    assert not (data / "run").exists()
    assert pyb.status(code=1)["running"] is False
    assert "not running" in pyb("kubeconfig", code=1).stderr


def test_what_is_written_is_for_the_owner_only(pyb: Shell) -> None:
    pyb.up("--token=secret")
    for path in [pyb.home / ".pybernetes", *(pyb.home / ".pybernetes").rglob("*")]:
        if not path.is_symlink():
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 or path.name.endswith(".pid"), path
    pyb("down")


def test_certificates_of_a_running_cluster_are_renewed_before_they_end(pyb: Shell, kubectl: str) -> None:
    pyb.up()
    data = pyb.home / ".pybernetes" / "pybernetes"
    chores = [each for each in json.loads((data / "run/components.json").read_text()) if "every" in each]
    assert [each["name"] for each in chores] == ["renewal"]
    assert chores[0]["refreshes"] == ["controller-manager", "scheduler", "ingress"]
    words = chores[0]["argv"][chores[0]["argv"].index("renew") :]
    assert pyb(*words).stdout == ""
    before = pyb.kubeconfig.read_text()
    for name in ("admin", "apiserver"):
        (data / "pki" / f"{name}.crt").unlink()
    assert "admin" in pyb(*words, code=10).stdout
    assert pyb.kubeconfig.read_text() != before
    answer = subprocess.run(
        [kubectl, f"--kubeconfig={pyb.kubeconfig}", "get", "namespaces", "-o=name"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert "namespace/default" in answer.stdout, answer.stderr
    pyb("down")


def test_a_second_up_says_so_and_does_no_harm(pyb: Shell) -> None:
    pyb.up()
    before = {name: process.pid for name, process in pyb.processes().items()}
    server = pyb.status()["server"]
    assert f"already running at {server}" in pyb.up().stdout
    assert "--store sqlite: cluster 'pybernetes' has its objects in memory" in pyb.up("--store=sqlite", code=1).stderr
    assert {name: process.pid for name, process in pyb.processes().items()} == before
    pyb("down")


def test_two_ups_at_the_same_time_start_one_cluster(pyb: Shell) -> None:
    command = [*tools.PYTHON, "up", "--nodes=0", "--store=memory", "--port=0"]
    both = [
        subprocess.Popen(command, env=pyb.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    shown = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sorted("already running" in text for text in shown) == [False, True]
    pyb("down")


def test_up_waits_for_another_command_on_the_same_cluster(pyb: Shell) -> None:
    data = pyb.home / ".pybernetes" / "pybernetes"
    data.mkdir(parents=True)
    command = [*tools.PYTHON, "up", "--nodes=0", "--store=memory", "--port=0"]
    with open(data / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = subprocess.Popen(
            command, env=pyb.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        assert "waiting for another pyb command" in process.stderr.readline()
        assert [path.name for path in data.iterdir()] == ["lock"]
    assert process.wait(60) == 0
    process.stderr.close()
    pyb("down")


def test_down_of_what_does_not_run_is_fine(pyb: Shell) -> None:
    result = pyb("down")
    assert "is not running" in result.stdout
    assert result.stderr == ""
    assert list(pyb.home.iterdir()) == []


def test_after_a_reboot_up_just_starts(pyb: Shell) -> None:
    pyb.up("--store=sqlite")
    server = pyb.status()["server"]
    processes = pyb.processes()
    for process in processes.values():
        os.kill(process.pid, signal.SIGKILL)
    tools.wait_until(lambda: not any(process.alive for process in processes.values()), "all are gone")
    assert pyb.status(code=1)["running"] is False
    again = pyb("up")
    assert "keeps what it was made with: --nodes 0 --store sqlite --port" in again.stdout
    assert pyb.status()["server"] == server
    pyb("down")
    assert pyb.contexts() == []


def test_a_reused_pid_is_left_alone(pyb: Shell) -> None:
    """The pid file names a living process, but with another start time: it is a stranger."""
    pyb.up()
    pyb("down")
    run = pyb.home / ".pybernetes" / "pybernetes" / "run"
    run.mkdir()
    with subprocess.Popen(["/bin/sleep", "1000"]) as stranger:
        try:
            (run / "supervisor.pid").write_text(f"{stranger.pid} 1 0\n")
            assert pyb.status(code=1)["running"] is False
            pyb.up()
            pyb("down")
            assert stranger.poll() is None
        finally:
            stranger.kill()
    assert not run.exists()


def test_a_cluster_that_lost_its_supervisor_is_seen_taken_over_and_ended(pyb: Shell) -> None:
    pyb.up()
    before = pyb.processes()
    os.kill(before["supervisor"].pid, signal.SIGKILL)
    tools.wait_until(lambda: not before["supervisor"].alive, "the supervisor is gone")
    seen = pyb("status", code=1).stdout
    assert seen.startswith("Cluster 'pybernetes': ready, without its supervisor; `./pyb up` gives it a new one")
    taken = pyb.up().stdout
    assert "taken over, with apiserver, controller-manager, scheduler" in taken
    after = pyb.processes()
    assert {name: process.pid for name, process in after.items() if name != "supervisor"} == {
        name: process.pid for name, process in before.items() if name != "supervisor"
    }
    os.kill(after["scheduler"].pid, signal.SIGKILL)
    tools.wait_until(
        lambda: pyb.processes().get("scheduler", before["scheduler"]).pid != before["scheduler"].pid, "back"
    )
    os.kill(after["supervisor"].pid, signal.SIGKILL)
    tools.wait_until(lambda: not after["supervisor"].alive, "the supervisor is gone")
    pyb("down")
    assert not before["apiserver"].alive


def test_a_crashed_component_comes_back(pyb: Shell) -> None:
    pyb.up()
    server = pyb.status()["server"]
    first = pyb.processes()["apiserver"]
    os.kill(first.pid, signal.SIGKILL)
    pki = pyb.home / ".pybernetes" / "pybernetes" / "pki"
    tools.wait_until(lambda: not first.alive and ready(server, pki), "the API server is back")
    components = pyb.status()["components"]
    assert isinstance(components, list)
    assert {component["name"]: component["restarts"] for component in components} == {
        "supervisor": 0,
        "apiserver": 1,
        "controller-manager": 0,
        "scheduler": 0,
    }
    pyb("down")


def test_a_component_that_dies_while_starting_shows_its_last_words(pyb: Shell) -> None:
    data = pyb.home / ".pybernetes" / "pybernetes"
    pyb.up("--store=sqlite")
    pyb("down")
    (data / "logs" / "apiserver.log").write_text("words of an earlier life\n")
    database = data / "store" / "pybernetes.db"
    for path in database.parent.iterdir():
        path.unlink()
    database.mkdir()
    result = pyb.up("--store=sqlite", code=1)
    assert "API server ended while starting" in result.stderr
    assert "apiserver.log says:\n" in result.stderr
    assert "earlier life" not in result.stderr
    assert not (data / "run").exists()
    assert pyb.contexts() == []
    database.rmdir()
    pyb.up("--store=sqlite")
    pyb("down")


def test_purge_removes_the_data_and_only_ours(pyb: Shell) -> None:
    pyb.up()
    assert "removed" in pyb("down", "--purge").stdout
    assert not (pyb.home / ".pybernetes" / "pybernetes").exists()

    precious = pyb.home / "precious"
    precious.mkdir()
    (precious / "thesis").touch()
    assert "left alone" in pyb("down", "--purge", f"--data-dir={precious}", code=1).stderr
    assert "holds no cluster" in pyb.up(f"--data-dir={precious}", code=1).stderr
    assert [path.name for path in precious.iterdir()] == ["thesis"]


def test_data_survives_down_and_the_certificates_stay(pyb: Shell) -> None:
    pyb.up("--store=sqlite")
    authority = (pyb.home / ".pybernetes" / "pybernetes" / "pki" / "ca.crt").read_bytes()
    pyb("down")
    assert "certificates: good" in pyb.up("--store=sqlite").stdout
    assert (pyb.home / ".pybernetes" / "pybernetes" / "pki" / "ca.crt").read_bytes() == authority
    pyb("down")


def test_clusters_of_different_names_live_side_by_side_and_are_found_by_name(pyb: Shell, tmp_path: Path) -> None:
    pyb.up()
    pyb.up("--name=second", f"--data-dir={tmp_path / 'elsewhere'}")
    assert pyb.contexts() == ["pybernetes", "pybernetes-second"]
    assert pyb.status("--name=second")["dataDir"] == str(tmp_path / "elsewhere")
    refusal = pyb.up("--name=second", f"--data-dir={tmp_path / 'third'}", code=1).stderr
    assert f"already running from {tmp_path / 'elsewhere'}" in refusal
    assert (
        "belongs to the cluster 'second'" in pyb.up("--name=x", f"--data-dir={tmp_path / 'elsewhere'}", code=1).stderr
    )
    assert yaml.safe_load(pyb.kubeconfig.read_text())["current-context"] == "pybernetes-second"
    pyb("down", "--name=second")
    assert yaml.safe_load(pyb.kubeconfig.read_text())["current-context"] == "pybernetes"
    # It is where it was also when it is started again, by its name alone; what to type next names it.
    again = pyb("up", "--name=second")
    assert pyb.status("--name=second")["dataDir"] == str(tmp_path / "elsewhere")
    assert "./pyb status --name second   |   ./pyb down --name second" in again.stdout
    pyb("down")
    assert yaml.safe_load(pyb.kubeconfig.read_text())["current-context"] == "pybernetes-second"
    pyb("up")
    pyb("down", "--name=second", "--purge")
    assert not (tmp_path / "elsewhere").exists()
    assert pyb.contexts() == ["pybernetes"]
    assert pyb.status()["ready"] is True
    pyb("down")


def test_the_users_kubeconfig_keeps_what_was_in_it(pyb: Shell, tmp_path: Path) -> None:
    path = tmp_path / "mine"
    path.write_text(yaml.safe_dump(FOREIGN))
    pyb.up(KUBECONFIG=f"{path}:{tmp_path / 'second'}")
    merged = yaml.safe_load(path.read_text())
    assert [entry["name"] for entry in merged["clusters"]] == ["other", "pybernetes"]
    assert merged["current-context"] == "pybernetes"
    assert not pyb.kubeconfig.exists()
    assert not (tmp_path / "second").exists()
    # `down` in a shell without the variable still knows where `up` has written.
    pyb("down")
    after = yaml.safe_load(path.read_text())
    assert after["clusters"] == FOREIGN["clusters"]
    assert (after["contexts"], after["users"], after["current-context"]) == ([], [], "")


def test_a_kubeconfig_that_cannot_be_parsed_stops_up_and_stays_as_it_is(pyb: Shell) -> None:
    pyb.kubeconfig.parent.mkdir()
    pyb.kubeconfig.write_text("clusters: [")
    result = pyb.up(code=1)
    assert result.stderr.count("\n") == 1
    assert "left alone" in result.stderr
    assert pyb.kubeconfig.read_text() == "clusters: ["
    assert pyb.processes() == {}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--name=Big"], "invalid cluster name"),
        (["--name=../x"], "invalid cluster name"),
        (["--port=70000"], "argument --port"),
        (["--store=etcd"], "belong together"),
        (["--nodes=-1"], "argument --nodes"),
        (["--nodes=101"], "--nodes 101: at most 100 on one machine"),
    ],
)
def test_flags_that_can_only_fail_are_refused_at_once(pyb: Shell, words: list[str], message: str) -> None:
    result = pyb("up", *words, code=None)
    assert result.returncode in (1, 2)
    assert message in result.stderr
    assert list(pyb.home.iterdir()) == []


def test_who_is_not_root_has_nodes_on_our_own_runtime(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(plan, "rights", lambda: Rights("user-namespaces"))
    monkeypatch.setattr(containerd, "runs", lambda: True)
    for wanted in (None, 0, 2):
        plan.check(wanted)
    assert plan.runtime(Layout("c", tmp_path), "auto") == "embedded"
    with pytest.raises(ClusterError, match="--runtime containerd: nodes on containerd need root"):
        plan.check(None, "containerd")
    with pytest.raises(ClusterError, match=r"--store etcd: .* no way to etcd; --nodes 0"):
        plan.check(None, store="etcd")
    plan.check(0, store="etcd")


def test_a_machine_that_cannot_have_nodes_names_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "rights", lambda: Rights("root"))
    monkeypatch.setattr(programs, "PATH", "/nowhere")
    with pytest.raises(ClusterError, match=r"containerd is not installed \(Debian: apt-get install containerd"):
        plan.check(None, "containerd")


def test_a_machine_without_containerd_has_nodes_on_our_own_runtime(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plan, "rights", lambda: Rights("root"))
    monkeypatch.setattr(programs, "PATH", "/nowhere")
    plan.check(None)
    assert plan.runtime(Layout("c", tmp_path), "auto") == "embedded"
    assert plan.runtime(Layout("c", tmp_path), "containerd") == "containerd"


def test_auto_takes_containerd_where_it_runs_and_a_cluster_keeps_what_it_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    layout, socket_path = Layout("c", tmp_path), str(tmp_path / "containerd.sock")
    monkeypatch.setattr(plan, "rights", lambda: Rights("root"))
    monkeypatch.setattr(containerd, "missing", lambda: None)
    assert not containerd.runs(socket_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(socket_path)
        assert not containerd.runs(socket_path)  # what a containerd that was killed leaves behind
        listener.listen()
        assert containerd.runs(socket_path)
    with socket.socket(socket.AF_UNIX) as hanging:
        os.unlink(socket_path)
        monkeypatch.setattr(containerd, "ANSWERS_WITHIN", 0.05)
        hanging.bind(socket_path)
        hanging.listen(0)
        assert containerd.runs(socket_path)  # the connection that fills the queue
        assert not containerd.runs(socket_path)
    for runs, name in ((True, "containerd"), (False, "embedded")):
        monkeypatch.setattr(containerd, "runs", lambda runs=runs: runs)
        assert plan.runtime(layout, "auto") == name
    for had in ("containerd", "embedded"):
        layout.write_record(Record("c", runtime=had))
        assert plan.runtime(layout, "auto") == had


def test_nodes_can_be_simulated_by_their_runtime(pyb: Shell) -> None:
    pyb.up("--runtime=simulated", "--nodes=2")
    assert "simulated-nodes" in pyb.processes()
    components = json.loads((pyb.home / ".pybernetes/pybernetes/run/components.json").read_bytes())
    flags = next(each["argv"] for each in components if each["name"] == "simulated-nodes")
    assert "--nodes=2" in flags
    pyb("down")


def test_status_is_a_table(pyb: Shell) -> None:
    assert pyb("status", code=1).stdout.startswith("There is no cluster 'pybernetes'; ")
    pyb.up()
    shown = pyb("status").stdout.splitlines()
    assert shown[0] == "Cluster 'pybernetes': ready"
    assert [line.split()[:2] for line in shown[-5:]] == [
        ["COMPONENT", "STATE"],
        ["supervisor", "running"],
        ["apiserver", "running"],
        ["controller-manager", "running"],
        ["scheduler", "running"],
    ]
    pyb("down")


def test_the_token_works_and_is_gone_with_the_next_start(pyb: Shell, kubectl: str) -> None:
    def who(server: object) -> int:
        pki = pyb.home / ".pybernetes" / "pybernetes" / "pki"
        command = [
            kubectl,
            "--kubeconfig=/dev/null",
            f"--server={server}",
            f"--certificate-authority={pki}/ca.crt",
            '--token=to,k"en',
            "get",
            "ns",
        ]
        return subprocess.run(command, env={"HOME": str(pyb.home)}, capture_output=True).returncode

    pyb.up('--token=to,k"en')
    assert who(pyb.status()["server"]) == 0
    pyb("down")
    pyb.up()
    assert who(pyb.status()["server"]) == 1
    pyb("down")


async def keys_of(endpoint: str, write: str = "") -> list[str]:
    """All keys of an etcd, after one is written."""
    store = EtcdStore([endpoint])
    await store.start()
    try:
        if write:
            await store.create(write, b"1")
        return [entry.key for entry in (await store.range("/")).entries]
    finally:
        await store.close()


def test_the_store_can_be_an_etcd_of_the_users(pyb: Shell, tmp_path: Path, kubectl: str) -> None:
    client, peer = (f"http://127.0.0.1:{tools.free_port()}" for _ in range(2))
    etcd = subprocess.Popen(
        [
            *("etcd", f"--data-dir={tmp_path / 'etcd'}", "--log-level=error", f"--initial-cluster=default={peer}"),
            *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
        ]
    )
    port = int(client.rpartition(":")[2])
    try:
        tools.wait_until(lambda: listens(port), "etcd listens")
        pyb.up("--store=etcd", f"--etcd-endpoints={client}")
        assert pyb.status()["store"] == "etcd"
        create = [kubectl, f"--kubeconfig={pyb.kubeconfig}", "create", "namespace", "kept"]
        subprocess.run(create, check=True)
        pyb("down")
        assert f"--etcd-endpoints {client}" in pyb("up").stdout
        get = [kubectl, f"--kubeconfig={pyb.kubeconfig}", "get", "namespace", "kept", "-o", "name"]
        assert subprocess.run(get, check=True, capture_output=True, text=True).stdout == "namespace/kept\n"
        # A purge removes what is the cluster's, and nothing else; without etcd it can be repeated.
        asyncio.run(keys_of(client, write="/others/key"))
        pyb("down")
        etcd.send_signal(signal.SIGSTOP)
        refused = pyb("down", "--purge", code=1)
        assert "keys are still in etcd" in refused.stderr
        assert "repeat `./pyb down --purge`" in refused.stderr
        etcd.send_signal(signal.SIGCONT)
        assert "Keys are removed from etcd" in pyb("down", "--purge").stdout
        assert asyncio.run(keys_of(client)) == ["/others/key"]
    finally:
        etcd.kill()
        etcd.wait()


def test_on_a_terminal_the_progress_is_alive(pyb: Shell) -> None:
    reading, writing = os.openpty()
    command = [*tools.PYTHON, "up", "--nodes=0", "--store=memory", "--port=0"]
    environment = pyb.environment | {"TERM": "xterm"}
    with subprocess.Popen(command, env=environment, stdin=writing, stdout=writing, stderr=writing) as process:
        os.close(writing)
        shown = b""
        while True:
            try:
                chunk = os.read(reading, 4096)
            except OSError:  # The last writer has gone.
                break
            if not chunk:
                break
            shown += chunk
        os.close(reading)
        assert process.wait(60) == 0
    text = shown.decode()
    assert "starting API server" in text
    assert "✓" in text
    assert "is ready after" in text
    pyb("down")
