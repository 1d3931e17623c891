"""Fixtures for pytest: a real Kubernetes cluster for each test, module or run.

`pyb_cluster` is what most tests take. The marker `@pytest.mark.pyb_cluster(...)` chooses its scope and options
(`options.py`); the ini options `pyb_cluster` (`nodes=3 runtime=embedded`) and `pyb_cluster_scope` choose for all tests.
Nothing of the project is imported before a test asks for a cluster.
"""

from __future__ import annotations

import asyncio
import os
import re
import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from pybernetes.testing.client import Client
    from pybernetes.testing.cluster import Cluster

SCOPES = ("function", "module", "session")
LOG_LINES = 60


def pytest_addoption(parser: pytest.Parser) -> None:
    """The ini options."""
    parser.addini("pyb_cluster", "options of test clusters, as NAME=VALUE ...", type="args", default=[])
    parser.addini("pyb_cluster_scope", "who shares a test cluster: function, module or session", default="function")


def pytest_configure(config: pytest.Config) -> None:
    """The marker."""
    config.addinivalue_line(
        "markers", "pyb_cluster(scope='function', **options): the scope and the options of the test's cluster"
    )
    config.stash[_SHARED] = {}


_SHARED = pytest.StashKey[dict[Any, Any]]()
_USED = pytest.StashKey[Any]()


@pytest.fixture
def pyb_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A running cluster; with the default scope, of the test's own."""
    scope, options = _wanted(request)
    if scope == "function":
        with _started(options) as cluster:
            request.node.stash[_USED] = cluster
            yield cluster
        return
    holder = request.node.getparent(pytest.Module) if scope == "module" else request.session
    shared = request.config.stash[_SHARED]
    key = (holder.nodeid, scope, repr(sorted(options.items())))
    if key not in shared:
        shared[key] = _started(options)
        holder.addfinalizer(lambda: shared.pop(key).stop())
    request.node.stash[_USED] = shared[key]
    yield shared[key]


@pytest.fixture
def pyb_client(pyb_cluster: Cluster) -> Client:
    """A client of the test's cluster that may do everything, for plain dicts."""
    return pyb_cluster.client


@pytest.fixture
def pyb_namespace(request: pytest.FixtureRequest, pyb_cluster: Cluster) -> Iterator[str]:
    """The name of a new namespace, which is deleted after the test."""
    words = re.sub("[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-") or "test"
    name = f"{words}-{secrets.token_hex(3)}"
    client = pyb_cluster.client
    client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    if pyb_cluster.options.controller_manager_flags == ():
        client.wait_for("serviceaccounts", "default", lambda account: True, name)
    yield name
    if _shares(request):
        client.delete("namespaces", name)


@pytest.fixture
def kubeconfig(pyb_cluster: Cluster) -> Path:
    """The path of a kubeconfig for the test's cluster."""
    return pyb_cluster.kubeconfig


@pytest.fixture
def pyb_environment(pyb_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """$KUBECONFIG names the test's cluster, for this process and for those it starts; the variables."""
    monkeypatch.setenv("KUBECONFIG", os.fspath(pyb_cluster.kubeconfig))
    return pyb_cluster.environment()


@pytest.fixture
def pyb_kubernetes_client(pyb_cluster: Cluster) -> Iterator[Any]:
    """An `ApiClient` of the official client, `kubernetes`."""
    config = pytest.importorskip("kubernetes.config")
    with config.new_client_from_config(config_file=os.fspath(pyb_cluster.kubeconfig)) as client:
        yield client


@pytest.fixture
def pyb_lightkube_client(pyb_cluster: Cluster) -> Any:
    """A `lightkube.Client`."""
    lightkube = pytest.importorskip("lightkube")
    return lightkube.Client(lightkube.KubeConfig.from_file(os.fspath(pyb_cluster.kubeconfig)).get())


@pytest.fixture
def pyb_kr8s_api(pyb_cluster: Cluster) -> Any:
    """An API object of `kr8s`, for code without an event loop."""
    kr8s = pytest.importorskip("kr8s")
    return kr8s.api(kubeconfig=os.fspath(pyb_cluster.kubeconfig))


@pytest.fixture
def pyb_kubernetes_asyncio_configuration(pyb_cluster: Cluster) -> Any:
    """A `Configuration` of `kubernetes_asyncio`, for an `ApiClient` of the test's own event loop."""
    config, client = (pytest.importorskip(f"kubernetes_asyncio.{name}") for name in ("config", "client"))
    configuration = client.Configuration()
    path = os.fspath(pyb_cluster.kubeconfig)
    asyncio.run(config.load_kube_config(config_file=path, client_configuration=configuration))
    return configuration


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Adds the state of the cluster to the report of a test that failed."""
    outcome: Any = yield
    report = outcome.get_result()
    cluster = item.stash.get(_USED, None)
    if report.when == "call" and report.failed and cluster is not None:
        for title, text in _sections(cluster):
            report.sections.append((title, text))


def _sections(cluster: Cluster) -> Iterator[tuple[str, str]]:
    from pybernetes.testing.state import events, summary, trace

    try:
        yield "objects of the cluster", summary(cluster.client)
        yield "events of the cluster", events(cluster.client)
        yield "trace of the cluster", trace(cluster.client)
        yield "log of the cluster", "\n".join(cluster.log.splitlines()[-LOG_LINES:])
    except Exception as error:  # the report of the failure is worth more
        yield "cluster", f"its state could not be read: {error}"


def _shares(request: pytest.FixtureRequest) -> bool:
    return _wanted(request)[0] != "function"


def _wanted(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """The scope and the options of a test's cluster: of the ini file, and over them of its markers."""
    config = request.config
    options: dict[str, Any] = {}
    for word in config.getini("pyb_cluster"):
        name, equals, value = word.partition("=")
        if not equals:
            raise pytest.UsageError(f"pyb_cluster: {word!r} is not NAME=VALUE")
        options[name] = value
    scope = config.getini("pyb_cluster_scope")
    for marker in reversed(list(request.node.iter_markers("pyb_cluster"))):
        if marker.args:
            raise pytest.UsageError(f"{request.node.nodeid}: options of pyb_cluster have names")
        options.update(marker.kwargs)
        scope = options.pop("scope", scope)
    if scope not in SCOPES:
        raise pytest.UsageError(f"{request.node.nodeid}: scope {scope!r} is none of {', '.join(SCOPES)}")
    return scope, options


def _started(options: dict[str, Any]) -> Cluster:
    from pybernetes.testing.cluster import Cluster, ClusterFailed
    from pybernetes.testing.options import OptionError

    try:
        return Cluster(**options).start()
    except (OptionError, ClusterFailed) as error:
        message = f"pyb_cluster: {error}"
    pytest.fail(message, pytrace=False)
