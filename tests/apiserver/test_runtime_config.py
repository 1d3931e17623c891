"""--runtime-config: what of all that is built in is served."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import pytest
from apiserver.client import Client

import tools
from pybernetes.api import scheme
from pybernetes.api.resources import OPTIONAL
from pybernetes.apiserver import runtime_config


def test_versions_and_resources_are_switched_off(tmp_path: Path) -> None:
    flag = "--runtime-config=autoscaling/v1=false,batch/v1/cronjobs=false,policy/v1=false,api/alpha=true"
    with tools.api_server(tmp_path, flag) as server:
        client = Client(server)
        assert client.get("/apis/autoscaling/v1").status == 404
        assert client.get("/apis/autoscaling/v1/horizontalpodautoscalers").status == 404
        assert client.get("/apis/autoscaling/v2/horizontalpodautoscalers").status == 200
        names = [each["name"] for each in client.get("/apis/batch/v1").json["resources"]]
        assert names == ["jobs", "jobs/status"]
        assert client.get("/apis/batch/v1/cronjobs").status == 404
        groups = {group["name"]: group for group in client.get("/apis").json["groups"]}
        assert "policy" not in groups
        assert [each["version"] for each in groups["autoscaling"]["versions"]] == ["v2"]
        assert client.get("/apis/admissionregistration.k8s.io/v1alpha1/initializerconfigurations").status == 200
        services = client.get("/apis/apiregistration.k8s.io/v1/apiservices").json["items"]
        found = {each["metadata"]["name"] for each in services}
        assert "v1alpha1.admissionregistration.k8s.io" in found
        assert not found & {"v1.policy", "v1.autoscaling"}


@pytest.mark.parametrize(
    ("config", "resource", "served"),
    [
        ("", ("apps", "v1", "deployments"), True),
        ("api/all=false", ("apps", "v1", "deployments"), False),
        ("api/all=false,apps/v1=true", ("apps", "v1", "deployments"), True),
        ("api/ga=false,apps/v1/deployments=true", ("apps", "v1", "deployments"), True),
        ("api/ga=false,apps/v1/deployments=true", ("apps", "v1", "daemonsets"), False),
        ("api/v1=false", ("", "v1", "pods"), False),
        ("v1", ("", "v1", "pods"), True),
        ("v1/secrets=false", ("", "v1", "secrets"), False),
        ("api/beta=false", ("", "v1", "pods"), True),
    ],
)
def test_the_more_special_wins(config: str, resource: tuple[str, str, str], served: bool) -> None:
    found = scheme.resource(*resource)
    assert found is not None
    assert runtime_config.enabled(runtime_config.parse(config), found, True) is served


@pytest.mark.parametrize(("config", "served"), [("", False), ("api/alpha", True), ("api/all=true", True)])
def test_alpha_versions_are_off_unless_asked_for(config: str, served: bool) -> None:
    assert runtime_config.enabled(runtime_config.parse(config), OPTIONAL[0][0], False) is served


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="invalid value apps/v1=maybe"):
        runtime_config.parse("apps/v1=maybe")
    command = [*tools.PYTHON, "apiserver", "--etcd-servers=memory://", "--runtime-config=foo/v1,batch/v1beta1=true"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert ran.returncode != 0
    assert "unknown api groups foo" in ran.stderr
    assert "group version batch/v1beta1 that has not been registered" in ran.stderr
