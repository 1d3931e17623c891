"""What older kubectl did and upstream dropped is kept behind its old names."""

from __future__ import annotations

import json

import pytest

import tools
from pybernetes.kubectl import main as kubectl


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


@pytest.mark.parametrize(
    ("flags", "kind", "version"),
    [
        ([], "Pod", "v1"),
        (["--replicas=3"], "Deployment", "apps/v1"),
        (["--restart=Always", "--replicas=1"], "Deployment", "apps/v1"),
        (["--restart=Never"], "Pod", "v1"),
        (["--restart-policy=Never"], "Pod", "v1"),
        (["--restart=OnFailure"], "Job", "batch/v1"),
        (["--restart-policy=OnFailure"], "Job", "batch/v1"),
        (["--generator=deployment/apps.v1"], "Deployment", "apps/v1"),
        (["--generator=run-pod/v1"], "Pod", "v1"),
        (["--generator=job/v1"], "Job", "batch/v1"),
        (["--generator=deployment/v1beta1"], "Deployment", "apps/v1"),
        (["--generator=deployment/apps.v1beta1"], "Deployment", "apps/v1"),
        (["--generator=cronjob/v1beta1", "--schedule=@daily"], "CronJob", "batch/v1"),
        (["--schedule=@daily"], "CronJob", "batch/v1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_run_makes_what_the_old_flags_mean(run, flags: list[str], kind: str, version: str) -> None:  # type: ignore[no-untyped-def]
    out, err, code = run("run", "old", "--image=nginx", "--dry-run=client", "-o", "json", *flags)
    assert code == 0, err
    obj = json.loads(out)
    assert (obj["kind"], obj["apiVersion"]) == (kind, version)
    if "beta" in " ".join(flags):
        assert "Warning:" in err
    if "--replicas=3" in flags:
        assert obj["spec"]["replicas"] == 3


def test_an_unknown_generator_is_refused_by_name(run) -> None:  # type: ignore[no-untyped-def]
    _, err, code = run("run", "old", "--image=nginx", "--generator=nothing/v7")
    assert code == 1
    assert "nothing/v7" in err


def test_record_writes_the_command_line_as_the_cause_of_the_change(run) -> None:  # type: ignore[no-untyped-def]
    cause = "jsonpath={.metadata.annotations.kubernetes\\.io/change-cause}"
    for argv in (
        ["run", "recorded", "--image=nginx:1", "--replicas=1", "--record"],
        ["scale", "deployment/recorded", "--replicas=2", "--record"],
        ["set", "image", "deployment/recorded", "recorded=nginx:2", "--record"],
        ["rollout", "restart", "deployment/recorded", "--record"],
    ):
        _, err, code = run(*argv)
        assert code == 0, err
        out, _, _ = run("get", "deployment", "recorded", "-o", cause)
        assert out == f"kubectl {' '.join(argv)}"
    run("delete", "deployment", "recorded")


def test_a_bad_image_name_fails_before_any_request(run, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setenv("KUBECONFIG", "/dev/null")
    out, err, code = run("run", "old", "--image=Bad Name", "--server=http://127.0.0.1:1")
    assert (out, code) == ("", 1)
    assert err == 'error: Invalid image name "Bad Name": invalid reference format\n'
