"""Which plugins run, in which order, with what configuration; and that only the plugins for a request are called."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Awaitable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from apiserver.admission.conftest import server_with

import tools
from pybernetes.api.resources import RESOURCES, Resource
from pybernetes.apiserver.admission import configuration
from pybernetes.apiserver.admission.plugin import CREATE, DELETE, UPDATE, Attributes, Chain, Later, Plugin
from pybernetes.apiserver.admission.plugins import PLUGINS, Entry, check_names, selected
from pybernetes.apiserver.options import parse


def resource(fullname: str) -> Resource:
    return next(each for each in RESOURCES if each.fullname == fullname)


def attributes(operation: str, fullname: str, subresource: str = "") -> Attributes:
    return Attributes(operation, resource(fullname), subresource, "ns", "name", None, None, None, False, [])


class Noted(Plugin):
    """Remembers what it was asked about."""

    def __init__(self, *resources: str, operations: tuple[str, ...] = (CREATE, UPDATE)) -> None:
        self.resources, self.operations = resources, operations
        self.seen: list[str] = []

    def admit(self, attributes: Attributes) -> None:
        self.seen.append(f"{attributes.operation} {attributes.resource.fullname}/{attributes.subresource}")


@pytest.mark.parametrize(
    ("wanted", "seen"),
    [
        (("pods",), ["CREATE pods/"]),
        (("pods/status",), ["UPDATE pods/status"]),
        (("pods/*",), ["CREATE pods/", "UPDATE pods/status"]),
        (("*",), ["CREATE pods/", "CREATE deployments.apps/"]),
        (("*/*",), ["CREATE pods/", "UPDATE pods/status", "CREATE deployments.apps/"]),
        (("deployments",), []),
        (("deployments.apps",), ["CREATE deployments.apps/"]),
    ],
)
async def test_a_plugin_sees_what_it_wants_to_see(wanted: tuple[str, ...], seen: list[str]) -> None:
    plugin = Noted(*wanted)
    chain = Chain([plugin])
    for _ in range(2):
        plugin.seen.clear()
        await chain.admit(attributes(CREATE, "pods"))
        await chain.admit(attributes(UPDATE, "pods", "status"))
        await chain.admit(attributes(CREATE, "deployments.apps"))
        await chain.admit(attributes(DELETE, "pods"))
        assert plugin.seen == seen


async def test_a_resource_that_comes_back_with_another_scope_is_judged_anew() -> None:
    class Namespaced(Noted):
        def wants(self, operation: str, resource: Resource, subresource: str) -> bool:
            return resource.namespaced

    plugin = Namespaced("*")
    chain = Chain([plugin])
    for namespaced in (True, False):
        custom = Resource("test.com", "v1", "examples", "Example", namespaced=namespaced)
        await chain.admit(Attributes(CREATE, custom, "", "ns", "name", None, None, None, False, []))
    assert plugin.seen == ["CREATE examples.test.com/"]


async def test_coroutines_and_functions_run_in_order_and_once_more_if_asked() -> None:
    order: list[str] = []

    class Plain(Plugin):
        def admit(self, attributes: Attributes) -> None:
            order.append("plain")

    class Waiting(Plugin):
        def admit(self, attributes: Attributes) -> Awaitable[None]:
            async def later() -> None:
                order.append("again" if attributes.reinvoking else "waited")
                attributes.reinvoke = True

            return later()

    registry: Any = None
    await Chain([Plain(registry), Waiting(registry), Plain(registry)]).admit(attributes(CREATE, "pods"))
    assert order == ["plain", "waited", "plain", "plain", "again", "plain"]


def test_the_default_plugins_are_those_of_upstream_in_its_order() -> None:
    names = selected([], [])
    assert names[:3] == ["NamespaceLifecycle", "LimitRanger", "ServiceAccount"]
    assert names[-1] == "ResourceQuota"
    assert "NodeRestriction" not in names
    assert selected(["NodeRestriction", "AlwaysPullImages"], ["ServiceAccount"])[2:5] == [
        "NodeRestriction",
        "TaintNodesByCondition",
        "AlwaysPullImages",
    ]


def test_unknown_and_contradicting_names_are_refused() -> None:
    assert check_names(["Nix"], ["Nada"]) == [
        'enable-admission-plugins plugin "Nix" is unknown',
        'disable-admission-plugins plugin "Nada" is unknown',
    ]
    assert check_names(["AlwaysDeny"], ["AlwaysDeny"]) == [
        "[AlwaysDeny] in enable-admission-plugins and disable-admission-plugins overlapped"
    ]


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["--enable-admission-plugins=PodSecurtiy"], 'enable-admission-plugins plugin "PodSecurtiy" is unknown'),
        (["--admission-control-config-file=/nowhere"], "no such file: /nowhere"),
    ],
)
def test_the_server_does_not_start_with_bad_flags(flags: list[str], complaint: str) -> None:
    command = [*tools.PYTHON, "apiserver", "--etcd-servers=memory://", "--secure-port=0", *flags]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert ended.returncode == 2
    assert complaint in ended.stderr


def test_a_configuration_stands_in_the_file_or_in_another(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("kind: Other\n")
    (tmp_path / "admission.yaml").write_text(
        """
apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- {name: A, configuration: {a: 1}}
- {name: B, path: other.yaml}
- {name: C}
"""
    )
    assert configuration.read(tmp_path / "admission.yaml") == {"A": {"a": 1}, "B": {"kind": "Other"}, "C": None}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[]", "not an object"),
        ("kind: Pod\napiVersion: v1", 'no kind "Pod" is registered for version "v1"'),
        ("kind: AdmissionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nplugin: []", 'unknown field "plugin"'),
        (
            "kind: AdmissionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nplugins: [{nmae: A}]",
            "unknown field `nmae`",
        ),
        (
            "kind: AdmissionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nplugins: [{name: A, path: nix}]",
            "unable to read admission control configuration",
        ),
        ("a: [", "yaml"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "admission.yaml").write_text(text)
    with pytest.raises(ValueError, match=re.escape(complaint)):
        configuration.read(tmp_path / "admission.yaml")


def test_always_deny_refuses_everything_and_external_addresses_can_be_denied(tmp_path: Path) -> None:
    with server_with(tmp_path, "--enable-admission-plugins=AlwaysDeny,AlwaysAdmit") as client:
        refused = client.post("/api/v1/namespaces", {"metadata": {"name": "x"}})
        assert (refused.status, refused.message) == (
            403,
            'namespaces "x" is forbidden: admission control is denying all modifications',
        )
        assert client.delete("/api/v1/namespaces/kube-node-lease").status == 403
        assert client.get("/api/v1/namespaces").status == 200


@pytest.mark.parametrize("entry", [each for each in PLUGINS if each.about], ids=lambda entry: entry.name)
def test_a_plugin_that_is_loaded_late_wants_nothing_else_and_needs_no_start(entry: Entry) -> None:
    module, _, name = entry.place.partition(":")
    plugin: type[Plugin] = getattr(import_module(f"pybernetes.apiserver.admission.{module}"), name)
    assert {each.partition("/")[0] for each in plugin.resources} == set(entry.about)
    assert (plugin.wants, plugin.start, plugin.stop) == (Plugin.wants, Plugin.start, Plugin.stop)


async def test_a_plugin_is_loaded_when_it_is_concerned_and_keeps_its_place() -> None:
    order: list[str] = []

    class Made(Plugin):
        resources = ("pods",)

        def admit(self, attributes: Attributes) -> None:
            order.append("late")

    class Early(Noted):
        def admit(self, attributes: Attributes) -> None:
            order.append("early")

    registry: Any = None
    chain = Chain([Later("Late", ("pods",), lambda: Made(registry)), Early("*")])
    await chain.admit(attributes(CREATE, "configmaps"))
    assert (order, len(chain.plugins)) == (["early"], 1)
    await chain.admit(attributes(CREATE, "pods"))
    assert (order, len(chain.plugins)) == (["early", "late", "early"], 2)


def test_flags_may_be_repeated() -> None:
    flags = ["--etcd-servers=memory://", "--enable-admission-plugins=AlwaysAdmit,NodeRestriction"]
    flags += ["--enable-admission-plugins=AlwaysDeny", "--disable-admission-plugins=Priority,", "--secure-port=0"]
    options = parse(flags)
    assert options.enable_admission_plugins == ["AlwaysAdmit", "NodeRestriction", "AlwaysDeny"]
    assert options.disable_admission_plugins == ["Priority"]
