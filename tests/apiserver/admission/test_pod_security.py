"""PodSecurity: the levels, by good and bad pods for each check; exemptions and defaults from a file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from apiserver.admission.conftest import Play, server_with
from apiserver.client import Client

from pybernetes.apiserver.admission.pod_security.configuration import read_configuration
from pybernetes.apiserver.admission.pod_security.policy import policy_of

BAD = {"hostNetwork": True, "containers": [{"name": "a", "image": "b"}]}
CONFIGURATION = """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: PodSecurity
  configuration:
    apiVersion: pod-security.admission.config.k8s.io/v1
    kind: PodSecurityConfiguration
    defaults:
      enforce: baseline
      enforce-version: v1.30
    exemptions:
      usernames: [operator]
      namespaces: [exempt]
      runtimeClasses: [sandbox]
"""


def test_answers_as_upstream(play: Play) -> None:
    play("pod_security")


@pytest.fixture(scope="module")
def configured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("configured")
    (folder / "admission.yaml").write_text(CONFIGURATION)
    flags = f"--admission-control-config-file={folder}/admission.yaml", "--disable-admission-plugins=ServiceAccount"
    with server_with(folder, *flags) as client:
        yield client


def pod(client: Client, namespace: str, spec: dict[str, Any], **headers: str) -> tuple[int, str]:
    body = {"metadata": {"generateName": "p-"}, "spec": spec}
    answer = client.post(f"/api/v1/namespaces/{namespace}/pods", body, **headers)
    return answer.status, answer.message


def test_defaults_hold_where_there_are_no_labels(configured: Client) -> None:
    namespace = configured.namespace()
    status, message = pod(configured, namespace, BAD)
    assert status == 403
    assert 'violates PodSecurity "baseline:v1.30": host namespaces (hostNetwork=true)' in message


def test_users_namespaces_and_runtime_classes_are_exempt(configured: Client) -> None:
    namespace = configured.namespace()
    assert pod(configured, namespace, BAD, Impersonate_User="operator")[0] == 201
    classes = "/apis/node.k8s.io/v1/runtimeclasses"
    assert configured.post(classes, {"metadata": {"name": "sandbox"}, "handler": "h"}).status == 201
    assert pod(configured, namespace, {**BAD, "runtimeClassName": "sandbox"})[0] == 201
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    made = configured.post("/api/v1/namespaces", {"metadata": {"name": "exempt", "labels": label}})
    assert made.status == 201
    assert "is exempt from Pod Security, and the policy (enforce=restricted:v1.30) will be ignored" in made.warnings[0]
    assert pod(configured, "exempt", BAD)[0] == 201


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"defaults": {"enforce": "strict"}}, 'defaults.enforce: Invalid value: "strict": must be one of'),
        ({"defaults": {"warn-version": "1.30"}}, "defaults.warn-version: Invalid value"),
        ({"defaults": {"enforcement": "baseline"}}, "enforcement"),
        ({"exemptions": {"namespaces": ["a", "a"]}}, 'exemptions.namespaces[1]: Duplicate value: "a"'),
        ({"exemptions": {"usernames": [""]}}, "username must not be empty"),
        ({"kind": "Other"}, 'no kind "Other" is registered'),
    ],
)
def test_a_bad_configuration_is_refused(change: dict[str, Any], complaint: str) -> None:
    sound = {"kind": "PodSecurityConfiguration", "apiVersion": "pod-security.admission.config.k8s.io/v1"}
    with pytest.raises(ValueError, match=re.escape(complaint)):
        read_configuration({**sound, **change})


def test_enforcing_a_level_warns_about_it_too() -> None:
    defaults = read_configuration(None).policy()
    prefix = "pod-security.kubernetes.io/"
    policy, errors = policy_of({f"{prefix}enforce": "baseline", f"{prefix}enforce-version": "v1.20"}, defaults)
    assert not errors
    assert str(policy.warn) == "baseline:v1.20"
    policy, _ = policy_of({f"{prefix}enforce": "baseline", f"{prefix}warn": "privileged"}, defaults)
    assert str(policy.warn) == "privileged:latest"
    policy, errors = policy_of({f"{prefix}enforce": "nonsense", f"{prefix}warn": "nonsense"}, defaults)
    assert len(errors) == 2
    assert (policy.enforce.level, policy.warn.level) == ("restricted", "privileged")
