"""Commands that upstream's kubectl does not have: why, undo, convert, tree, diff between revisions, many logs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tools
from pybernetes.kubectl import main as kubectl
from pybernetes.kubectl.commands.tree import _links
from pybernetes.kubectl.commands.why import explain_any
from pybernetes.kubectl.converting import convert
from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.mapper import Mapping

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: undone, namespace: default}}\ndata: {data}\n"


@pytest.fixture
def run(cluster: tools.ApiServer, tmp_path, monkeypatch, capsys):  # type: ignore[no-untyped-def]
    """Runs a command line; returns stdout, stderr and the exit code."""
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    monkeypatch.setenv("HOME", str(tmp_path))

    def call(*argv: str) -> tuple[str, str, int]:
        code = kubectl.main(list(argv))
        found = capsys.readouterr()
        return found.out, found.err, code

    return call


def test_undo_takes_back_the_last_apply_and_then_itself(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    manifest = tmp_path / "cm.yaml"
    data = ("get", "cm", "undone", "-n", "default", "-o", "jsonpath={.data}")
    manifest.write_text(CONFIG.format(data='{a: "1", b: "2"}'))
    assert run("apply", "-f", str(manifest))[2] == 0
    out, err, code = run("undo", "-f", str(manifest))
    assert (out, code) == ("", 1)
    assert "was created by the last apply" in err
    manifest.write_text(CONFIG.format(data='{a: "9", c: "3"}'))
    assert run("apply", "-f", str(manifest))[2] == 0
    assert run("undo", "cm/undone", "-n", "default")[0] == "configmap/undone undone (configured)\n"
    assert run(*data)[0] == '{"a":"1","b":"2"}'
    assert run("undo", "cm/undone", "-n", "default")[2] == 0
    assert run(*data)[0] == '{"a":"9","c":"3"}'
    kept = list((tmp_path / ".kube" / "cache" / "pyb" / "applied").rglob("*.json"))
    assert [each.stat().st_mode & 0o777 for each in kept] == [0o600]
    run("delete", "cm", "undone", "-n", "default")


def test_values_of_secrets_are_not_kept_for_undo(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    manifest = tmp_path / "secret.yaml"
    manifest.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: hidden, namespace: default}\ndata: {a: YQ==}\n")
    assert run("apply", "-f", str(manifest))[2] == 0
    assert not list((tmp_path / ".kube" / "cache" / "pyb").rglob("applied/*/*.json"))
    assert "not kept" in run("undo", "-f", str(manifest))[1]
    run("delete", "secret", "hidden", "-n", "default")


@pytest.mark.parametrize(
    ("obj", "events", "sentence"),
    [
        (
            {"metadata": {"deletionTimestamp": "T", "finalizers": ["a/b"]}},
            [],
            "it is being deleted since T and waits until its finalizers are removed: a/b",
        ),
        (
            {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "No", "message": "not yet."}]}},
            [],
            "its condition Ready is False (No not yet)",
        ),
        (
            {"status": {"conditions": [{"type": "MemoryPressure", "status": "True"}]}},
            [],
            "its condition MemoryPressure is True",
        ),
        (
            {"metadata": {"generation": 3}, "status": {"observedGeneration": 2}},
            [],
            "its controller has not seen its last change yet",
        ),
        (
            {"status": {"phase": "Pending"}},
            [{"type": "Warning", "reason": "R", "message": "no class"}],
            "its phase is Pending: no class",
        ),
        ({}, [], "nothing in its status or events says that something is wrong"),
    ],
)
def test_why_says_what_keeps_an_object(obj: dict[str, Any], events: list[dict[str, Any]], sentence: str) -> None:
    assert explain_any(obj, events).sentence == sentence


def test_why_explains_a_pod_that_no_scheduler_has_seen(run) -> None:  # type: ignore[no-untyped-def]
    run("run", "lost", "--image=nginx", "-n", "default")
    out, _, code = run("why", "lost", "-n", "default")
    assert code == 0
    assert out.startswith("Pod default/lost: ")
    run("delete", "pod", "lost", "-n", "default")


def test_an_ingress_is_converted_both_ways() -> None:
    old = {
        "apiVersion": "extensions/v1beta1",
        "kind": "Ingress",
        "spec": {
            "backend": {"serviceName": "d", "servicePort": "http"},
            "rules": [{"http": {"paths": [{"path": "/", "backend": {"serviceName": "s", "servicePort": 80}}]}}],
        },
    }
    new = convert(old, "")
    assert new["apiVersion"] == "networking.k8s.io/v1"
    assert new["spec"]["defaultBackend"] == {"service": {"name": "d", "port": {"name": "http"}}}
    path = new["spec"]["rules"][0]["http"]["paths"][0]
    assert path["backend"] == {"service": {"name": "s", "port": {"number": 80}}}
    back = convert(new, "extensions/v1beta1")
    assert back["spec"]["backend"] == old["spec"]["backend"]  # type: ignore[index]


def test_what_an_old_version_cannot_say_is_refused() -> None:
    scaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "spec": {
            "metrics": [{"type": "Resource", "resource": {"name": "memory", "target": {"averageUtilization": 5}}}]
        },
    }
    with pytest.raises(CLIError, match="no field for metrics other than CPU"):
        convert(scaler, "autoscaling/v1")
    with pytest.raises(CLIError, match="converting apps/v1 to apps/v7 is not known"):
        convert({"apiVersion": "apps/v1", "kind": "Deployment"}, "apps/v7")


def test_a_tree_follows_claims_volumes_and_endpoints() -> None:
    def entry(kind: str, name: str, group: str = "", **rest: Any) -> tuple[Mapping, dict[str, Any]]:
        mapping = Mapping(
            group, "v1", {"name": kind.lower() + "s", "kind": kind, "namespaced": kind != "PersistentVolume"}
        )
        space = {} if kind == "PersistentVolume" else {"namespace": "n"}
        return mapping, {"metadata": {"name": name, **space}, **rest}

    known = {
        "pod": entry("Pod", "p", spec={"volumes": [{"persistentVolumeClaim": {"claimName": "c"}}]}),
        "claim": entry("PersistentVolumeClaim", "c", spec={"volumeName": "v"}),
        "volume": entry("PersistentVolume", "v"),
        "service": entry("Service", "s"),
        "endpoints": entry("Endpoints", "s"),
        "slice": entry(
            "EndpointSlice", "s-1", "discovery.k8s.io", endpoints=[{"targetRef": {"kind": "Pod", "name": "p"}}]
        ),
    }
    assert set(_links(known)) == {
        ("pod", "claim"), ("claim", "volume"), ("service", "endpoints"), ("slice", "pod"),
    }  # fmt: skip


def test_a_comparison_with_the_own_context_finds_nothing(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    run("create", "cm", "same", "-n", "default", "--from-literal=a=b")
    current = run("config", "current-context")[0].strip()
    assert run("diff", "cm/same", "-n", "default", "--to-context", current)[2] == 0
    assert "no revision 4" in _revision_error(run)
    run("delete", "cm", "same", "-n", "default")


def _revision_error(run: Any) -> str:
    run("create", "deployment", "revised", "--image=nginx", "-n", "default")
    err = str(run("diff", "deploy/revised", "-n", "default", "--revision=4")[1])
    run("delete", "deployment", "revised", "-n", "default")
    return err


def test_a_kustomization_reads_nothing_outside_its_folder(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "secret.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n")
    folder = tmp_path / "inside"
    folder.mkdir()
    (folder / "kustomization.yaml").write_text("resources: [../secret.yaml]\n")
    out, err, code = run("kustomize", str(folder))
    assert (out, code) == ("", 1)
    assert "is not in or below" in err
    assert run("kustomize", str(folder), "--load-restrictor=LoadRestrictionsNone")[2] == 0
    assert "not supported" in run("kustomize", str(folder), "--enable-helm")[1]
