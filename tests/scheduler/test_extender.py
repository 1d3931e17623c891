"""Extenders over real HTTP and TLS: what they are sent, how their answers are read, what goes wrong."""

from __future__ import annotations

import base64
import socket
import ssl
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from scheduler.fake_extender import FakeExtender

from pybernetes import pki
from pybernetes.api.core.v1 import Container, Node, Pod, PodSpec, ResourceRequirements
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.scheduler.config.v1.types import Extender, ExtenderManagedResource, ExtenderTLSConfig
from pybernetes.scheduler.extender import HTTPExtender
from pybernetes.scheduler.framework.extender import ExtenderError, Victims
from pybernetes.scheduler.framework.podinfo import PodInfo

NODES = [Node(metadata=ObjectMeta(name=name, labels={"a": "b"})) for name in ("n1", "n2", "n3")]


def pod(name: str = "p", *resources: ResourceRequirements, init: ResourceRequirements | None = None) -> Pod:
    return Pod(
        metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}"),
        spec=PodSpec(
            containers=[Container(name="c", resources=each) for each in resources] or [Container(name="c")],
            init_containers=[Container(name="i", resources=init)] if init else None,
        ),
    )


async def test_filter_sends_whole_nodes_and_reads_both_kinds_of_failures() -> None:
    def answer(args: dict[str, Any]) -> Any:
        return {
            "Nodes": {"items": [args["Nodes"]["items"][0]]},
            "FailedNodes": {"n2": "too busy"},
            "FailedAndUnresolvableNodes": {"n3": "wrong kind"},
            "Error": "",
        }

    with FakeExtender({"filter": answer}) as server:
        extender = HTTPExtender(Extender(url_prefix=server.url + "/", filter_verb="filter"))
        result = await extender.filter(pod(), NODES)
        await extender.close()
    assert list(result.feasible) == ["n1"]
    assert result.failed == {"n2": "too busy"}
    assert result.failed_and_unresolvable == {"n3": "wrong kind"}
    ((verb, args),) = server.asked
    assert verb == "filter"
    assert args["Pod"]["metadata"] == {"name": "p", "namespace": "ns", "uid": "uid-p"}
    assert [each["metadata"]["name"] for each in args["Nodes"]["items"]] == ["n1", "n2", "n3"]
    assert args["Nodes"]["items"][0]["metadata"]["labels"] == {"a": "b"}
    assert args["NodeNames"] is None


async def test_an_extender_that_knows_nodes_is_sent_names_and_may_answer_in_any_case_of_letters() -> None:
    with FakeExtender({"f": lambda args: {"nodenames": args["NodeNames"][1:], "failedNodes": None}}) as server:
        extender = HTTPExtender(Extender(url_prefix=server.url, filter_verb="f", node_cache_capable=True))
        result = await extender.filter(pod(), NODES)
        await extender.close()
    assert list(result.feasible) == ["n2", "n3"]
    assert server.asked[0][1]["NodeNames"] == ["n1", "n2", "n3"]
    assert server.asked[0][1]["Nodes"] is None


async def test_a_filter_that_names_no_nodes_leaves_none() -> None:
    with FakeExtender({"f": lambda args: {}}) as server:
        extender = HTTPExtender(Extender(url_prefix=server.url, filter_verb="f"))
        assert list((await extender.filter(pod(), NODES)).feasible) == []
        await extender.close()


async def test_prioritize() -> None:
    with FakeExtender({"p": lambda args: [{"Host": "n1", "Score": 3}, {"host": "n3", "score": 10}]}) as server:
        extender = HTTPExtender(Extender(url_prefix=server.url, prioritize_verb="p", weight=5))
        assert await extender.prioritize(pod(), NODES) == {"n1": 3, "n3": 10}
        assert (extender.weight, extender.is_prioritizer, extender.is_filter) == (5, True, False)
        await extender.close()


async def test_bind_says_which_pod_and_where() -> None:
    with FakeExtender({"b": lambda args: {"Error": "" if args["Node"] == "n1" else "no"}}) as server:
        extender = HTTPExtender(Extender(url_prefix=server.url, bind_verb="b"))
        await extender.bind(pod(), "n1")
        with pytest.raises(ExtenderError, match=r"^no$"):
            await extender.bind(pod(), "n2")
        await extender.close()
    assert server.asked[0] == ("b", {"PodName": "p", "PodNamespace": "ns", "PodUID": "uid-p", "Node": "n1"})


@pytest.mark.parametrize("cached", [False, True])
async def test_preemption_sends_victims_and_gets_back_who_really_has_to_go(cached: bool) -> None:
    first, second, third = (PodInfo(pod(name)) for name in "abc")

    def answer(args: dict[str, Any]) -> Any:
        return {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "uid-c"}], "NumPDBViolations": 2}}}

    with FakeExtender({"preempt": answer}) as server:
        extender = HTTPExtender(Extender(url_prefix=server.url, preempt_verb="preempt", node_cache_capable=cached))
        victims = {"n1": Victims([first], 1), "n2": Victims([second])}
        result = await extender.process_preemption(pod(), victims, lambda name: [first, third])
        with pytest.raises(
            ExtenderError, match=r"claims to preempt pod \(UID: uid-c\) on node: n1, but the pod is not"
        ):
            await extender.process_preemption(pod(), victims, lambda name: [first])
        await extender.close()
    assert result == {"n1": Victims([third], 2)}
    sent = server.asked[0][1]
    if cached:
        assert sent["NodeNameToMetaVictims"]["n1"] == {"Pods": [{"UID": "uid-a"}], "NumPDBViolations": 1}
        assert sent["NodeNameToVictims"] is None
    else:
        assert sent["NodeNameToVictims"]["n1"]["Pods"][0]["metadata"]["name"] == "a"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (503, r"^failed f with extender at URL http://127\.0\.0\.1:\d+/scheduler/f, code 503$"),
        ({"Error": "out of order"}, "^out of order$"),
        ({"NodeNames": ["n9"]}, 'claims a filtered node "n9" which is not found in the input node list'),
        ({"NodeNames": [5]}, "NodeNames is not a list of names"),
        ({"NodeNames": [], "FailedNodes": {"n1": 5}}, "FailedNodes is not a map of texts"),
        ([], "not an object"),
    ],
)
async def test_answers_that_are_errors(answer: Any, message: str) -> None:
    with FakeExtender({"f": lambda args: answer}) as server:
        extender = HTTPExtender(Extender(url_prefix=server.url, filter_verb="f", node_cache_capable=True))
        with pytest.raises(ExtenderError, match=message):
            await extender.filter(pod(), NODES)
        await extender.close()


async def test_a_refused_connection() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        extender = HTTPExtender(Extender(url_prefix=url, filter_verb="f"))
        with pytest.raises(ExtenderError, match=f'^Post "{url}/f": '):
            await extender.filter(pod(), NODES)
        await extender.close()


async def test_one_that_is_slow_is_not_waited_for() -> None:
    release = threading.Event()
    with FakeExtender({"f": lambda args: release.wait(10)}) as server:
        extender = HTTPExtender(Extender(url_prefix=server.url, filter_verb="f", http_timeout="50ms"))
        before = time.monotonic()
        with pytest.raises(ExtenderError, match="context deadline exceeded"):
            await extender.filter(pod(), NODES)
        assert time.monotonic() - before < 5
        release.set()
        await extender.close()


def test_who_is_asked_about_which_pods() -> None:
    managed = [
        ExtenderManagedResource(name="x.io/gpu", ignored_by_scheduler=True),
        ExtenderManagedResource(name="x.io/net"),
    ]
    extender = HTTPExtender(Extender(url_prefix="http://x", filter_verb="f", managed_resources=managed))
    gpu = ResourceRequirements(requests={"x.io/gpu": "1"})
    net = ResourceRequirements(limits={"x.io/net": "1"})
    assert extender.ignored_resources == frozenset({"x.io/gpu"})
    assert extender.is_interested(PodInfo(pod("a", ResourceRequirements(requests={"cpu": "1"}), gpu)))
    assert extender.is_interested(PodInfo(pod("b", ResourceRequirements(), init=net)))
    assert not extender.is_interested(PodInfo(pod("c", ResourceRequirements(requests={"cpu": "1"}))))
    assert HTTPExtender(Extender(url_prefix="http://x", filter_verb="f")).is_interested(PodInfo(pod("d")))


async def test_tls_with_an_authority_and_a_certificate_of_our_own(tmp_path: Path) -> None:
    authority = pki.create_authority("extenders")
    server_identity = pki.issue_server(authority, "extender", ["extender.example"])
    client_identity = pki.issue_client(authority, "the-scheduler")
    (tmp_path / "server.pem").write_bytes(server_identity.certificate_pem + server_identity.key_pem)
    (tmp_path / "ca.pem").write_bytes(authority.certificate_pem)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem")
    context.load_verify_locations(tmp_path / "ca.pem")
    context.verify_mode = ssl.CERT_OPTIONAL
    with FakeExtender({"b": lambda args: {}}, context) as server:

        async def bind(tls: ExtenderTLSConfig | None, https: bool = True) -> None:
            config = Extender(url_prefix=server.url, bind_verb="b", enable_https=https, tls_config=tls)
            extender = HTTPExtender(config)
            try:
                await extender.bind(pod(), "n1")
            finally:
                await extender.close()

        await bind(
            ExtenderTLSConfig(
                ca_file=str(tmp_path / "ca.pem"),
                server_name="extender.example",
                cert_data=base64.b64encode(client_identity.certificate_pem).decode(),
                key_data=base64.b64encode(client_identity.key_pem).decode(),
            )
        )
        assert server.peers == ["the-scheduler"]
        await bind(None)  # `enableHTTPS` without a CA does not verify the server, as upstream
        await bind(ExtenderTLSConfig(insecure=True), https=False)
        with pytest.raises(ExtenderError):  # the certificate is for another name
            await bind(ExtenderTLSConfig(ca_file=str(tmp_path / "ca.pem")))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Extender(url_prefix="extender:80"), "not a server's URL"),
        (
            Extender(url_prefix="https://x", tls_config=ExtenderTLSConfig(ca_file="/nowhere/ca.pem")),
            'extender "https://x": .*No such file',
        ),
        (
            Extender(url_prefix="https://x", tls_config=ExtenderTLSConfig(ca_data="eA==", insecure=True)),
            "with the insecure flag is not allowed",
        ),
    ],
)
def test_settings_that_cannot_be_used(config: Extender, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        HTTPExtender(config)
