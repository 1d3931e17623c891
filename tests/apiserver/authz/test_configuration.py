"""The flags and the file that say who decides."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from apiserver.client import Client
from backends import kubeconfig_of

from pybernetes.apiserver.authz import configuration
from pybernetes.apiserver.authz.authorizer import AlwaysAllow, AlwaysDeny, Decision
from pybernetes.apiserver.authz.chain import AuthorizerChain
from pybernetes.apiserver.authz.union import decide
from pybernetes.apiserver.authz.webhook import Webhook
from pybernetes.apiserver.options import parse
from pybernetes.apiserver.requestinfo import RequestInfo
from pybernetes.apiserver.user import User
from tools import api_server, wait_until

ALWAYS = {"type": "AlwaysAllow", "name": "alwaysallow"}


def document(*authorizers: Any) -> bytes:
    return json.dumps(
        {
            "apiVersion": "apiserver.config.k8s.io/v1",
            "kind": "AuthorizationConfiguration",
            "authorizers": list(authorizers),
        }
    ).encode()


def hook(file: Path, **changes: Any) -> dict[str, Any]:
    settings = {
        "timeout": "3s",
        "subjectAccessReviewVersion": "v1",
        "failurePolicy": "Deny",
        "connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": str(file)},
        **changes,
    }
    return {"type": "Webhook", "name": "hook", "webhook": settings}


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    file = tmp_path / "webhook.kubeconfig"
    file.write_text(json.dumps(kubeconfig_of("http://127.0.0.1:1/authorize")))
    return file


@pytest.mark.parametrize(
    ("authorizers", "problem"),
    [
        ([], "authorizers: Required value: at least one authorization mode must be defined"),
        ([{"name": "x"}], "authorizers[0].type: Required value"),
        ([{"type": "Magic", "name": "x"}], 'authorizers[0].type: Unsupported value: "Magic": supported values: "ABAC"'),
        ([ALWAYS, ALWAYS], 'authorizers[1].type: Duplicate value: "AlwaysAllow"'),
        ([{"type": "RBAC"}], "authorizers[0].name: Required value"),
        ([{"type": "RBAC", "name": "A_B"}], "authorizer name is invalid"),
        ([{"type": "RBAC", "name": "mine"}], "expected name rbac for authorizer RBAC instead of mine"),
        ([{"type": "Webhook", "name": "x"}], "authorizers[0].webhook: Required value: required when type=Webhook"),
        ([{**ALWAYS, "webhook": {}}], "may only be specified when type=Webhook"),
        ([{**ALWAYS, "nme": "x"}], 'strict decoding error: unknown field "authorizers[0].nme"'),
    ],
)
def test_what_is_wrong_with_a_configuration(authorizers: list[Any], problem: str) -> None:
    with pytest.raises(ValueError) as failed:  # noqa: PT011
        configuration.read(document(*authorizers))
    assert problem in str(failed.value)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"timeout": "0s"}, "timeout: Required value"),
        ({"timeout": "x"}, 'time: invalid duration "x"'),
        (
            {"timeout": 3},
            "cannot unmarshal number into Go struct field WebhookConfiguration.authorizers.webhook.timeout",
        ),
        ({"timeout": "31s"}, 'timeout: Invalid value: "31s": must be > 0s and <= 30s'),
        ({"authorizedTTL": "-1s"}, "authorizedTTL: Invalid value"),
        ({"subjectAccessReviewVersion": "v2"}, 'Unsupported value: "v2": supported values: "v1", "v1beta1"'),
        ({"failurePolicy": ""}, "failurePolicy: Required value"),
        ({"failurePolicy": "Ignore"}, 'Unsupported value: "Ignore": supported values: "NoOpinion", "Deny"'),
        ({"connectionInfo": {}}, "connectionInfo.type: Required value"),
        ({"connectionInfo": {"type": "KubeConfigFile", "kubeConfigFile": "x"}}, "must be an absolute path"),
        ({"matchConditions": [{"expression": "true"}]}, "required if match conditions are specified"),
        (
            {"matchConditions": [{"expression": "1"}], "matchConditionSubjectAccessReviewVersion": "v1"},
            'matchConditions[0].expression: Invalid value: "1": must evaluate to bool but got int',
        ),
        (
            {
                "matchConditions": [{"expression": "true"}, {"expression": "true"}],
                "matchConditionSubjectAccessReviewVersion": "v1",
            },
            'matchConditions[1].expression: Duplicate value: "true"',
        ),
    ],
)
def test_what_is_wrong_with_a_webhook(kubeconfig: Path, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError) as failed:  # noqa: PT011
        configuration.read(document(hook(kubeconfig, **changes)))
    assert problem in str(failed.value)


def chain(file: Path, registry: Any = None) -> AuthorizerChain:
    options = argparse.Namespace(authorization_config=file, authorization_mode=[], authorization_policy_file=None)
    return AuthorizerChain(registry or argparse.Namespace(), options)


def test_a_changed_file_is_read_again_and_a_bad_one_is_not_used(tmp_path: Path, kubeconfig: Path) -> None:
    file = tmp_path / "authorization.yaml"
    file.write_bytes(document(ALWAYS))
    registry = argparse.Namespace()
    made = chain(file, registry)
    assert isinstance(registry.authorizers[1], AlwaysAllow)
    file.write_bytes(document(ALWAYS, {"type": "AlwaysDeny", "name": "alwaysdeny"}, hook(kubeconfig)))
    asyncio.run(made.reload())
    assert [type(each) for each in registry.authorizers[1:]] == [AlwaysAllow, AlwaysDeny, Webhook]
    file.write_bytes(b"{")
    asyncio.run(made.reload())
    file.write_bytes(document(hook(kubeconfig)))  # what there was at the start may not go
    asyncio.run(made.reload())
    assert [type(each) for each in registry.authorizers[1:]] == [AlwaysAllow, AlwaysDeny, Webhook]
    file.write_bytes(document(ALWAYS))  # what came later may
    asyncio.run(made.reload())
    assert [type(each) for each in registry.authorizers[1:]] == [AlwaysAllow]


class _Denies:
    """An authorizer that takes its time."""

    kind, name = "Webhook", "slow"

    def __init__(self) -> None:
        self.asked, self.answer = asyncio.Event(), asyncio.Event()

    async def authorize(self, user: User, info: RequestInfo) -> tuple[Decision, str]:
        self.asked.set()
        await self.answer.wait()
        return Decision.NO_OPINION, ""

    def rules(self, user: User, namespace: str) -> Any:
        raise NotImplementedError


def test_a_decision_that_waits_for_an_authorizer_goes_on_with_those_it_began_with(tmp_path: Path) -> None:
    """A configuration that changes meanwhile must not let a denying authorizer be skipped."""
    file = tmp_path / "authorization.yaml"
    deny = {"type": "AlwaysDeny", "name": "alwaysdeny"}
    file.write_bytes(document(deny))

    async def scenario() -> Decision:
        registry = argparse.Namespace()
        made = chain(file, registry)
        slow = _Denies()
        registry.authorizers = (registry.authorizers[0], slow, *registry.authorizers[1:])
        question = RequestInfo("/x", "get", {})
        deciding = asyncio.create_task(decide(registry.authorizers, User("jane"), question))
        await slow.asked.wait()
        file.write_bytes(document(deny, ALWAYS))
        await made.reload()
        assert isinstance(registry.authorizers[2], AlwaysAllow)
        slow.answer.set()
        return (await deciding)[0]

    assert asyncio.run(scenario()) is Decision.NO_OPINION, "as all that it began with"


def test_a_file_that_is_not_used_is_reported_once_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "authorization.yaml"
    file.write_bytes(document(ALWAYS))
    made = chain(file)
    file.write_bytes(document(ALWAYS, {"type": "RBAC", "name": "rbac"}))
    asyncio.run(made.reload())
    assert "authorizer type RBAC is not allowed if it was not enabled at initial server startup" in caplog.text
    file.unlink()
    for _ in range(3):
        asyncio.run(made.reload())
    assert caplog.text.count("is not used") == 2
    counted = {
        (sample.name, sample.labels.get("status")): sample.value
        for family in made._reloads.collect()
        for sample in family.samples
    }
    name = "apiserver_authorization_config_controller_automatic_reloads_total"
    assert counted[name, "failure"] == 2
    assert (name, "success") not in counted


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--authorization-mode=Magic"], 'authorization-mode "Magic" is not a valid mode'),
        (["--authorization-mode=RBAC,RBAC"], "has mode specified more than once"),
        (["--authorization-mode=ABAC"], "authorization policy file not passed"),
        (["--authorization-mode=Webhook"], "authorization config file not passed"),
        (["--authorization-policy-file={file}"], "without mode ABAC"),
        (["--authorization-webhook-config-file={file}"], "without mode Webhook"),
        (["--authorization-config={file}", "--authorization-mode=RBAC"], "can not be specified when"),
    ],
)
def test_flags_that_do_not_fit_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flags: list[str], problem: str
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(SystemExit):
        parse(["--etcd-servers=memory://", *[each.format(file=file) for each in flags]])
    assert problem in capsys.readouterr().err


def test_a_server_follows_its_configuration_file(tmp_path: Path) -> None:
    file = tmp_path / "authorization.yaml"
    file.write_bytes(document({"type": "RBAC", "name": "rbac"}))
    with api_server(tmp_path / "server", f"--authorization-config={file}") as server:
        client = Client(server)

        def status() -> int:
            return client.get("/api/v1/pods", Impersonate_User="jane").status

        assert status() == 403
        file.write_bytes(document({"type": "RBAC", "name": "rbac"}, ALWAYS))
        wait_until(lambda: status() == 200, "the new configuration is used")


def test_an_error_without_a_decision_is_a_500(tmp_path: Path, kubeconfig: Path) -> None:
    file = tmp_path / "authorization.yaml"
    condition = {"expression": "request.extra['none'][0] == 'x'"}
    changes = {"matchConditions": [condition], "matchConditionSubjectAccessReviewVersion": "v1"}
    file.write_bytes(document(hook(kubeconfig, **changes)))
    with api_server(tmp_path / "server", f"--authorization-config={file}") as server:
        answer = Client(server).get("/api/v1/pods?x=1", Impersonate_User="jane")
        assert answer.status == 500
        assert answer.body.startswith(b'Internal Server Error: "/api/v1/pods?x=1": cel evaluation error')
