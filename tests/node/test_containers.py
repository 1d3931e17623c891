"""Environments, names, DNS, users and privileges of containers, on a real node, through kubectl."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from node.cluster import Cluster
from node.pods import Namespace, config_map, container, pod, secret

import tools
from pybernetes.api.core.v1 import Pod


def _field(name: str, path: str) -> dict[str, Any]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _resource(name: str, resource: str, divisor: str = "0") -> dict[str, Any]:
    return {"name": name, "valueFrom": {"resourceFieldRef": {"resource": resource, "divisor": divisor}}}


def _secured(name: str, script: str, context: dict[str, Any] | None = None, **of_pod: Any) -> Any:
    return pod(name, script, main={"securityContext": context or {}}, **of_pod)


CAPABILITIES = "grep CapEff /proc/self/status | cut -f2"
STATUS = "awk '/^(NoNewPrivs|Seccomp):/ {print $1, $2}' /proc/self/status"

CASES: dict[str, tuple[Any, str]] = {
    "env": (
        pod(
            "env",
            "env | grep ^E_ | sort; echo $0 $1 $2",
            main={
                "args": ["$(E_PLAIN)", "$$(E_PLAIN)", "$(E_NONE)"],
                "envFrom": [
                    {"prefix": "E_M_", "configMapRef": {"name": "m"}},
                    {"prefix": "E_S_", "secretRef": {"name": "s"}},
                    {"prefix": "E_X_", "secretRef": {"name": "none", "optional": True}},
                ],
                "env": [
                    {"name": "E_PLAIN", "value": "plain"},
                    {"name": "E_BOTH", "value": "$(E_PLAIN)-$(E_M_data-1)-$(E_NONE)"},
                    {"name": "E_MAP", "valueFrom": {"configMapKeyRef": {"name": "m", "key": "data-1"}}},
                    {"name": "E_SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
                    {"name": "E_NO", "valueFrom": {"secretKeyRef": {"name": "s", "key": "no", "optional": True}}},
                ],
            },
        ),
        "E_BOTH=plain-value-1-$(E_NONE)\nE_MAP=value-1\nE_M_data_2=value-2\nE_PLAIN=plain\nE_SECRET=secret-value\n"
        "E_S_key=secret-value\nplain $(E_PLAIN) $(E_NONE)\n",
    ),
    "downward-env": (
        pod(
            "downward-env",
            'echo $NAME $SPACE $ACCOUNT $NODE; [ "$IP" = "$IPS" ] && ip addr show eth0 | grep -q "inet $IP/"'
            ' && echo own; [ "$HOST" = "$HOSTS" ] && echo $HOST; echo $CPU $MEM $RCPU $RMEM',
            main={
                "resources": {
                    "requests": {"cpu": "250m", "memory": "32Mi"},
                    "limits": {"cpu": "1250m", "memory": "64Mi"},
                },
                "env": [
                    _field("NAME", "metadata.name"),
                    _field("SPACE", "metadata.namespace"),
                    _field("ACCOUNT", "spec.serviceAccountName"),
                    _field("NODE", "spec.nodeName"),
                    _field("IP", "status.podIP"),
                    _field("IPS", "status.podIPs"),
                    _field("HOST", "status.hostIP"),
                    _field("HOSTS", "status.hostIPs"),
                    _resource("CPU", "limits.cpu"),
                    _resource("MEM", "limits.memory", "1Mi"),
                    _resource("RCPU", "requests.cpu", "1m"),
                    _resource("RMEM", "requests.memory"),
                ],
            },
        ),
        "downward-env containers default node-1\nown\n{node}\n2 64 250 33554432\n",
    ),
    "services": (
        pod("services", "env | grep -E '^(WEB|KUBERNETES_SERVICE_HOST)' | sort"),
        "KUBERNETES_SERVICE_HOST={kubernetes}\nWEB_PORT=tcp://{web}:80\nWEB_PORT_80_TCP=tcp://{web}:80\n"
        "WEB_PORT_80_TCP_ADDR={web}\nWEB_PORT_80_TCP_PORT=80\nWEB_PORT_80_TCP_PROTO=tcp\nWEB_SERVICE_HOST={web}\n"
        "WEB_SERVICE_PORT=80\nWEB_SERVICE_PORT_HTTP=80\n",
    ),
    "no-services": (
        pod("no-services", "env | grep -c -E '^(WEB|KUBERNETES)_SERVICE_HOST'", enableServiceLinks=False),
        "1\n",
    ),
    "names": (
        pod(
            "names",
            "hostname; head -1 /etc/hosts; grep -v ^# /etc/hosts | tail -4 | tr '\\t' ' '"
            ' | sed "s/^$(hostname -i)/IP/"',
            hostname="host",
            subdomain="sub",
            hostAliases=[{"ip": "123.45.67.89", "hostnames": ["foo.local", "bar.local"]}],
        ),
        "host\n# Kubernetes-managed hosts file.\nfe00::2 ip6-allrouters\n"
        "IP host.sub.containers.svc.cluster.local host\n\n123.45.67.89 foo.local bar.local\n",
    ),
    "whole-name": (
        pod("whole-name", "hostname", hostname="host", subdomain="sub", setHostnameAsFQDN=True),
        "host.sub.containers.svc.cluster.local\n",
    ),
    "host-network": (
        pod("host-network", "hostname; head -1 /etc/hosts", hostNetwork=True),
        "node-1\n# Kubernetes-managed hosts file (host network).\n",
    ),
    "own-hosts": (
        pod(
            "own-hosts",
            "cat /etc/hosts",
            main={"volumeMounts": [{"name": "m", "mountPath": "/etc/hosts", "subPath": "data-1"}]},
            volumes=[{"name": "m", "configMap": {"name": "m"}}],
        ),
        "value-1",
    ),
    "dns": (
        pod(
            "dns",
            "cat /etc/resolv.conf",
            dnsPolicy="None",
            dnsConfig={
                "nameservers": ["1.1.1.1"],
                "searches": ["resolv.conf.local"],
                "options": [{"name": "ndots", "value": "2"}, {"name": "edns0"}],
            },
        ),
        "search resolv.conf.local\nnameserver 1.1.1.1\noptions ndots:2 edns0\n",
    ),
    "user": (_secured("user", "id -u; id -g", {"runAsUser": 65534}), "65534\n65534\n"),
    "pod-user": (
        _secured("pod-user", "id -u; id -g", securityContext={"runAsUser": 1001, "runAsGroup": 2002}),
        "1001\n2002\n",
    ),
    "own-user": (
        _secured(
            "own-user",
            "id -u; id -g",
            {"runAsUser": 1002, "runAsGroup": 2003},
            securityContext={"runAsUser": 1001, "runAsGroup": 2002},
        ),
        "1002\n2003\n",
    ),
    "unprivileged": (
        _secured(
            "unprivileged",
            "ip link add br9 type bridge 2> /dev/null && echo made || echo refused",
            {"privileged": False},
        ),
        "refused\n",
    ),
    "privileged": (
        _secured("privileged", "ip link add br9 type bridge && echo made || echo refused", {"privileged": True}),
        "made\n",
    ),
    "writable-root": (
        _secured("writable-root", "touch /file && echo written", {"readOnlyRootFilesystem": False}),
        "written\n",
    ),
    "read-only-root": (
        _secured("read-only-root", "exec 2>&1; touch /file || true", {"readOnlyRootFilesystem": True}),
        "touch: /file: Read-only file system\n",
    ),
    "no-new-privileges": (
        _secured("no-new-privileges", STATUS, {"runAsUser": 1000, "allowPrivilegeEscalation": False}),
        "NoNewPrivs: 1\nSeccomp: 0\n",
    ),
    "new-privileges": (
        _secured("new-privileges", STATUS, {"allowPrivilegeEscalation": True}),
        "NoNewPrivs: 0\nSeccomp: 0\n",
    ),
    "seccomp": (
        _secured("seccomp", STATUS, securityContext={"seccompProfile": {"type": "RuntimeDefault"}}),
        "NoNewPrivs: 0\nSeccomp: 2\n",
    ),
    "no-capabilities": (
        _secured("no-capabilities", CAPABILITIES, {"capabilities": {"drop": ["ALL"]}}),
        "0000000000000000\n",
    ),
    "one-capability": (
        _secured("one-capability", CAPABILITIES, {"capabilities": {"drop": ["ALL"], "add": ["NET_ADMIN"]}}),
        "0000000000001000\n",
    ),
    "sysctl": (
        _secured(
            "sysctl",
            "cat /proc/sys/kernel/shm_rmid_forced /proc/sys/net/ipv4/ip_unprivileged_port_start",
            securityContext={
                "sysctls": [
                    {"name": "kernel.shm_rmid_forced", "value": "1"},
                    {"name": "net/ipv4/ip_unprivileged_port_start", "value": "81"},
                ]
            },
        ),
        "1\n81\n",
    ),
    "own-processes": (pod("own-processes", "echo $$$$"), "1\n"),
    "shared-processes": (
        pod(
            "shared-processes",
            [
                container(
                    "until ps | grep -q 'sleep 7[7]7'; do sleep 0.05; done; echo seen; touch /stop/x",
                    volumeMounts=[{"name": "e", "mountPath": "/stop"}],
                ),
                container(
                    "sleep 777 & while ! [ -e /stop/x ]; do sleep 0.05; done",
                    "other",
                    volumeMounts=[{"name": "e", "mountPath": "/stop"}],
                ),
            ],
            shareProcessNamespace=True,
            volumes=[{"name": "e", "emptyDir": {}}],
        ),
        "seen\n",
    ),
    "host-processes": (
        pod("host-processes", "ps | grep -q '[k]ubelet --config' && echo seen", hostPID=True),
        "seen\n",
    ),
}


@pytest.fixture(scope="module")
def space(node: Cluster) -> Iterator[Namespace]:
    found = Namespace(node, "containers")
    found.apply(
        config_map("m", {"data-1": "value-1", "data_2": "value-2"}),
        secret("s", {"key": "secret-value"}),
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"ports": [{"name": "http", "port": 80}], "selector": {"a": "b"}},
        },
    )
    found.apply(*(each for each, _ in CASES.values()))
    yield found
    node.kubectl("delete", "namespace", "containers", "--wait=false")


@pytest.fixture(scope="module")
def facts(space: Namespace) -> dict[str, str]:
    """Addresses of this cluster."""
    cluster = space.cluster
    addresses = cluster.get("node", "node-1")["status"]["addresses"]
    return {
        "kubernetes": cluster.get("service", "kubernetes")["spec"]["clusterIP"],
        "web": cluster.get("service", "web", "-n", space.name)["spec"]["clusterIP"],
        "node": next(each["address"] for each in addresses if each["type"] == "InternalIP"),
    }


@pytest.mark.parametrize("name", CASES)
def test_what_a_container_is(space: Namespace, facts: dict[str, str], name: str) -> None:
    expected = re.sub(r"\{(\w+)\}", lambda found: facts[found[1]], CASES[name][1])
    assert space.logs(name) == expected


def test_who_must_not_be_root_does_not_start_as_root(space: Namespace) -> None:
    space.apply(
        _secured("root-image", "id -u", securityContext={"runAsNonRoot": True}),
        _secured("explicit-user", "id -u", {"runAsNonRoot": True, "runAsUser": 1234}),
    )
    message = space.waiting("root-image", "CreateContainerConfigError")
    assert re.fullmatch(
        r'container has runAsNonRoot and image will run as root \(pod: "root-image_containers\([-0-9a-f]+\)",'
        r" container: main\)",
        message,
    )
    assert space.logs("explicit-user") == "1234\n"
    space.kubectl("delete", "pod", "root-image", "--wait=false")


@pytest.mark.parametrize(
    ("name", "context", "reason", "message"),
    [
        (
            "unsafe-sysctl",
            {"sysctls": [{"name": "kernel.msgmax", "value": "65536"}]},
            "SysctlForbidden",
            'forbidden sysctl: "kernel.msgmax" not allowlisted',
        ),
        (
            "apparmor",
            {"appArmorProfile": {"type": "RuntimeDefault"}},
            "AppArmor",
            "Cannot enforce AppArmor: AppArmor is not enabled on the host",
        ),
    ],
)
def test_a_node_refuses_what_it_cannot_or_must_not_do(
    space: Namespace, name: str, context: dict[str, Any], reason: str, message: str
) -> None:
    space.apply(_secured(name, "true", securityContext=context))
    status = space.wait(name, lambda found: found["status"]["phase"] == "Failed", "failed")["status"]
    assert status["reason"] == reason
    assert message in status["message"]
    space.kubectl("delete", "pod", name, "--wait=false")


def test_own_users_are_refused_with_a_reason(space: Namespace) -> None:
    space.apply(pod("own-users", "id", hostUsers=False))
    message = space.event("own-users", "FailedCreatePodSandBox")
    assert "can't set `spec.hostUsers: false`, runtime does not support user namespaces" in message
    space.kubectl("delete", "pod", "own-users", "--wait=false")


def test_last_words(space: Namespace) -> None:
    space.apply(
        pod("last-words", "printf DONE > /dev/termination-log"),
        pod(
            "last-log",
            "echo from the log; exit 1",
            main={"terminationMessagePolicy": "FallbackToLogsOnError"},
        ),
        pod(
            "other-place",
            "printf ELSEWHERE > /tmp/words",
            main={"terminationMessagePath": "/tmp/words", "securityContext": {"runAsUser": 1000}},
        ),
    )
    expected = {"last-words": "DONE", "last-log": "from the log\n", "other-place": "ELSEWHERE"}
    for name, words in expected.items():
        status = space.wait(name, lambda found: found["status"]["phase"] in ("Succeeded", "Failed"), "ended")["status"]
        assert status["containerStatuses"][0]["state"]["terminated"].get("message") == words


def test_ephemeral_containers_see_the_processes_of_their_target(space: Namespace) -> None:
    space.apply(pod("debugged", "sleep 654"))
    space.running("debugged")
    debugger = {**container("ps", "debugger"), "targetContainerName": "main", "terminationMessagePolicy": "File"}

    async def debug() -> None:
        async with space.cluster.client() as client:
            spec = {"ephemeralContainers": [debugger]}
            await client.patch(
                Pod, "debugged", {"spec": spec}, space.name, type="strategic", subresource="ephemeralcontainers"
            )

    asyncio.run(debug())
    tools.wait_until(
        lambda: "sleep 654" in space.kubectl("logs", "debugged", "-c", "debugger", check=False), "seen", 60.0
    )
    space.kubectl("delete", "pod", "debugged", "--wait=false")
