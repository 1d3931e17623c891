"""Our context goes into the user's kubeconfig and comes out again; nothing else changes."""

from __future__ import annotations

import stat
import subprocess
import threading
from pathlib import Path

import pytest
import yaml

import tools
from pybernetes.cluster import certificates, kubeconfig
from pybernetes.cluster.errors import ClusterError

LISTS = ("clusters", "contexts", "users")

# Spellings that a YAML round trip through Python values would change.
FOREIGN = """\
apiVersion: v1
kind: Config
clusters:
- cluster:
    server: https://203.0.113.1:6443
    insecure-skip-tls-verify: true
  name: other
contexts:
- context:
    cluster: other
    namespace: "1e3"
    user: other
  name: other
current-context: other
extensions:
- name: 'yes'
  extension: {a: on, since: 2020-01-01, octal: 0755, big: 1_000}
users:
- name: other
  user:
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: get-token
      env:
      - name: MODE
        value: "off"
"""


@pytest.fixture
def content(tmp_path: Path) -> dict[str, object]:
    pki = tmp_path / "pki"
    pki.mkdir()
    certificates.ensure(pki, [])
    return kubeconfig.document("pybernetes", "https://127.0.0.1:6443", pki)


def names(path: Path) -> dict[str, list[str]]:
    loaded = yaml.safe_load(path.read_text())
    return {key: [entry["name"] for entry in loaded[key]] for key in LISTS}


def test_everything_foreign_survives_letter_by_letter(tmp_path: Path, content: dict[str, object]) -> None:
    path = tmp_path / "config"
    path.write_text(FOREIGN)
    kubeconfig.merge(path, content)
    assert names(path) == {key: ["other", "pybernetes"] for key in LISTS}
    assert yaml.safe_load(path.read_text())["current-context"] == "pybernetes"
    assert kubeconfig.unmerge(path, "pybernetes")
    assert path.read_text() == FOREIGN.replace("current-context: other", "current-context: ''") + "preferences: {}\n"


def test_a_new_file_is_private_and_a_second_merge_changes_nothing(tmp_path: Path, content: dict[str, object]) -> None:
    path = tmp_path / "new" / "config"
    kubeconfig.merge(path, content)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    first = path.read_text()
    kubeconfig.merge(path, content)
    assert path.read_text() == first
    assert [entry.name for entry in path.parent.iterdir()] == ["config"]


@pytest.mark.parametrize("empty", ["", "# only a comment\n", "null\n", "clusters: []\n", "clusters: null\nusers:\n"])
def test_empty_files_and_lists_can_be_added_to(tmp_path: Path, content: dict[str, object], empty: str) -> None:
    path = tmp_path / "config"
    path.write_text(empty)
    kubeconfig.merge(path, content)
    assert names(path) == {key: ["pybernetes"] for key in LISTS}
    assert "\n- name: pybernetes\n" in path.read_text()


def test_kubectl_reads_what_was_merged(tmp_path: Path, content: dict[str, object], kubectl: str) -> None:
    path = tmp_path / "config"
    path.write_text(FOREIGN)
    kubeconfig.merge(path, content)

    def ask(*words: str) -> str:
        return subprocess.run(
            [kubectl, f"--kubeconfig={path}", *words], check=True, capture_output=True, text=True
        ).stdout

    assert ask("config", "current-context") == "pybernetes\n"
    assert ask("config", "get-contexts", "-o", "name").split() == ["other", "pybernetes"]
    assert ask("config", "view", "--minify", "-o", "jsonpath={.clusters[0].cluster.server}") == "https://127.0.0.1:6443"


def test_the_current_context_is_unset_only_if_it_is_ours(tmp_path: Path, content: dict[str, object]) -> None:
    path = tmp_path / "config"
    path.write_text(FOREIGN)
    kubeconfig.merge(path, content)
    path.write_text(path.read_text().replace("current-context: pybernetes", "current-context: other"))
    kubeconfig.unmerge(path, "pybernetes")
    assert yaml.safe_load(path.read_text())["current-context"] == "other"


@pytest.mark.parametrize(
    "broken", ["clusters: [", "- a list\n", "just words\n", "clusters: {}\n", "a: 1\n---\nb: 2\n", "\x00"]
)
def test_what_is_no_kubeconfig_is_left_alone(tmp_path: Path, content: dict[str, object], broken: str) -> None:
    path = tmp_path / "config"
    path.write_text(broken)
    for change in (lambda: kubeconfig.merge(path, content), lambda: kubeconfig.unmerge(path, "pybernetes")):
        with pytest.raises(ClusterError, match="left alone") as refusal:
            change()
        assert "\n" not in str(refusal.value)
    assert path.read_text() == broken
    assert [entry.name for entry in tmp_path.iterdir() if entry.name != "pki"] == ["config"]


def test_nothing_is_written_when_there_is_nothing_to_take_out(tmp_path: Path) -> None:
    assert not kubeconfig.unmerge(tmp_path / "none", "pybernetes")
    assert list(tmp_path.iterdir()) == []
    path = tmp_path / "config"
    path.write_text(FOREIGN + "# a comment that stays\n")
    assert not kubeconfig.unmerge(path, "pybernetes")
    assert path.read_text() == FOREIGN + "# a comment that stays\n"


def test_a_link_stays_a_link(tmp_path: Path, content: dict[str, object]) -> None:
    (tmp_path / "real").write_text(FOREIGN)
    (tmp_path / "config").symlink_to("real")
    kubeconfig.merge(tmp_path / "config", content)
    assert (tmp_path / "config").is_symlink()
    assert names(tmp_path / "real")["users"] == ["other", "pybernetes"]


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config"
    pki = tmp_path / "pki"
    pki.mkdir()
    certificates.ensure(pki, [])
    wanted = [f"c{number}" for number in range(8)]
    threads = [
        threading.Thread(target=kubeconfig.merge, args=(path, kubeconfig.document(name, "https://x", pki)))
        for name in wanted
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(names(path)["contexts"]) == wanted


def test_a_lock_of_kubectl_is_waited_for_and_named(
    tmp_path: Path, content: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = tmp_path / "config", tmp_path / "config.lock"
    lock.touch()
    monkeypatch.setattr(kubeconfig, "LOCK_TIMEOUT", 0.05)
    with pytest.raises(ClusterError, match=r"locked.*config\.lock"):
        kubeconfig.merge(path, content)
    monkeypatch.setattr(kubeconfig, "LOCK_TIMEOUT", 10)
    threading.Timer(0.05, lock.unlink).start()
    kubeconfig.merge(path, content)
    tools.wait_until(path.exists, "merged")
    assert not lock.exists()


@pytest.mark.parametrize(
    ("variable", "expected"), [(None, "home/.kube/config"), ("", "home/.kube/config"), ("a:b", "a"), (":b", "b")]
)
def test_the_file_is_the_one_kubectl_writes_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, expected: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    if variable is None:
        monkeypatch.delenv("KUBECONFIG", raising=False)
    else:
        monkeypatch.setenv("KUBECONFIG", variable)
    assert kubeconfig.user_file() == tmp_path / expected
