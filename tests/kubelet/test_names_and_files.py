"""Host names, hosts files and resolv.conf of pods."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pybernetes.api.core.v1 import HostAlias, Pod, PodDNSConfig, PodDNSConfigOption, PodSpec
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.kubelet.container.dns import ClusterDNS, DNSConfig, DNSError, parse_resolv_conf, pod_dns
from pybernetes.kubelet.container.hostname import Hostname, HostnameError, kernel_hostname, pod_hostname
from pybernetes.kubelet.container.hosts_file import managed_hosts, write_hosts_file


def _pod(name: str = "web", **spec: Any) -> Pod:
    return Pod(metadata=ObjectMeta(name=name, namespace="shop", uid="u1"), spec=PodSpec(**spec))


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        (_pod(), Hostname("web")),
        (_pod(hostname="db"), Hostname("db")),
        (_pod(subdomain="sub"), Hostname("web", "sub.shop.svc.cluster.local")),
        (_pod(hostname="db", subdomain="sub"), Hostname("db", "sub.shop.svc.cluster.local")),
        (_pod(hostname="db", subdomain="sub", hostname_override="a.example.com"), Hostname("a.example.com")),
        (_pod("a" * 70), Hostname("a" * 63)),
        (_pod("a" * 62 + "-b"), Hostname("a" * 62)),
    ],
)
def test_a_pod_is_called_after_its_hostname_else_itself(pod: Pod, expected: Hostname) -> None:
    assert pod_hostname(pod, "cluster.local") == expected


def test_the_kernel_knows_the_whole_name_only_if_asked_for_and_only_if_it_fits() -> None:
    asked = _pod(subdomain="sub", set_hostname_as_fqdn=True)
    assert kernel_hostname(asked, pod_hostname(asked, "cluster.local")) == "web.sub.shop.svc.cluster.local"
    assert kernel_hostname(_pod(subdomain="sub"), Hostname("web", "sub.shop")) == "web"
    long = _pod("a" * 50, subdomain="sub", set_hostname_as_fqdn=True)
    with pytest.raises(HostnameError, match=r"is too long \(64 characters is the max, 77 characters requested\)"):
        kernel_hostname(long, pod_hostname(long, "cluster.local"))


def test_a_static_pod_with_a_bad_name_is_refused() -> None:
    with pytest.raises(HostnameError, match=r'^pod Hostname "A_b" is not a valid DNS label: '):
        pod_hostname(_pod(hostname="A_b"), "cluster.local")


def test_the_hosts_file_names_the_pod_and_its_aliases() -> None:
    aliases = [HostAlias(ip="1.2.3.4", hostnames=["a", "b.c"]), HostAlias(ip="::5", hostnames=["d"])]
    assert managed_hosts(["10.0.0.7", "fd00::7"], Hostname("web", "sub.shop.svc.cluster.local"), aliases) == (
        "# Kubernetes-managed hosts file.\n"
        "127.0.0.1\tlocalhost\n"
        "::1\tlocalhost ip6-localhost ip6-loopback\n"
        "fe00::0\tip6-localnet\n"
        "fe00::0\tip6-mcastprefix\n"
        "fe00::1\tip6-allnodes\n"
        "fe00::2\tip6-allrouters\n"
        "10.0.0.7\tweb.sub.shop.svc.cluster.local\tweb\n"
        "fd00::7\tweb.sub.shop.svc.cluster.local\tweb\n"
        "\n"
        "# Entries added by HostAliases.\n"
        "1.2.3.4\ta\tb.c\n"
        "::5\td\n"
    )
    assert managed_hosts(["10.0.0.7"], Hostname("web")).endswith("fe00::2\tip6-allrouters\n10.0.0.7\tweb\n")


def test_on_the_hosts_network_the_nodes_file_is_kept_and_written_in_place(tmp_path: Path) -> None:
    node, own = tmp_path / "hosts", tmp_path / "etc-hosts"
    node.write_bytes(b"127.0.0.1 localhost # \xff\n")
    pod = _pod(host_network=True, host_aliases=[HostAlias(ip="1.2.3.4", hostnames=["a"])])
    write_hosts_file(own, pod, [], Hostname("web"), str(node))
    inode = own.stat().st_ino
    write_hosts_file(own, pod, [], Hostname("web"), str(node))
    assert own.read_bytes() == (
        b"# Kubernetes-managed hosts file (host network).\n127.0.0.1 localhost # \xff\n"
        b"\n# Entries added by HostAliases.\n1.2.3.4\ta\n"
    )
    assert own.stat().st_ino == inode
    assert own.stat().st_mode & 0o777 == 0o644


_RESOLV = (
    "# x\nnameserver 8.8.8.8\nsearch old.example\nsearch corp.example. . lan\noptions ndots:1 rotate\noptions ndots:2\n"
)


@pytest.fixture
def cluster_dns(tmp_path: Path) -> ClusterDNS:
    (tmp_path / "resolv.conf").write_text(_RESOLV)
    return ClusterDNS(["10.96.0.10"], "cluster.local", str(tmp_path / "resolv.conf"), ["192.0.2.1", "fd00::1"])


def _told(pod: Pod, dns: ClusterDNS) -> tuple[DNSConfig, list[tuple[str, str]]]:
    said: list[tuple[str, str]] = []
    return pod_dns(pod, dns, lambda reason, message: said.append((reason, message))), said


def test_the_last_search_line_holds_and_later_options_replace_earlier_ones() -> None:
    assert parse_resolv_conf(_RESOLV) == DNSConfig(["8.8.8.8"], ["corp.example", "lan"], ["ndots:2", "rotate"])
    with pytest.raises(DNSError, match="nameserver list is empty"):
        parse_resolv_conf("nameserver\n")


def test_policies(cluster_dns: ClusterDNS) -> None:
    first = DNSConfig(
        ["10.96.0.10"],
        ["shop.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp.example", "lan"],
        ["ndots:5"],
    )
    node = DNSConfig(["8.8.8.8"], ["corp.example", "lan"], ["ndots:2", "rotate"])
    assert _told(_pod(dns_policy="ClusterFirst"), cluster_dns) == (first, [])
    assert _told(_pod(dns_policy="ClusterFirst", host_network=True), cluster_dns) == (node, [])
    assert _told(_pod(dns_policy="ClusterFirstWithHostNet", host_network=True), cluster_dns) == (first, [])
    assert _told(_pod(dns_policy="Default"), cluster_dns) == (node, [])
    assert _told(_pod(dns_policy="None"), cluster_dns) == (DNSConfig(), [])


def test_dns_config_adds_and_replaces(cluster_dns: ClusterDNS) -> None:
    more = PodDNSConfig(
        nameservers=["1.1.1.1", "10.96.0.10"],
        searches=["x.example", "cluster.local"],
        options=[PodDNSConfigOption(name="ndots", value="3"), PodDNSConfigOption(name="edns0")],
    )
    found, _ = _told(_pod(dns_policy="ClusterFirst", dns_config=more), cluster_dns)
    assert found.servers == ["10.96.0.10", "1.1.1.1"]
    assert found.searches[-1] == "x.example"
    assert found.options == ["ndots:3", "edns0"]


def test_without_cluster_dns_pods_get_the_nodes_and_an_event(cluster_dns: ClusterDNS) -> None:
    found, said = _told(_pod(dns_policy="ClusterFirst"), ClusterDNS([], "cluster.local", cluster_dns.resolv_conf))
    assert found.servers == ["8.8.8.8"]
    assert said == [
        (
            "MissingClusterDNS",
            'pod: "web_shop(u1)". kubelet does not have ClusterDNS IP configured and cannot create Pod using'
            ' "ClusterFirst" policy. Falling back to "Default" policy.',
        )
    ]


def test_without_a_resolv_conf_nothing_is_found(cluster_dns: ClusterDNS) -> None:
    found, _ = _told(_pod(dns_policy="Default"), ClusterDNS(resolv_conf="", node_ips=["192.0.2.1", "fd00::1"]))
    assert found == DNSConfig(["127.0.0.1", "::1"], ["."])
    with pytest.raises(DNSError, match=r"^open /nope: no such file or directory$"):
        pod_dns(_pod(dns_policy="Default"), ClusterDNS(resolv_conf="/nope"), lambda *_: None)


def test_what_resolvers_cannot_take_is_left_out_and_said(cluster_dns: ClusterDNS) -> None:
    many = PodDNSConfig(
        nameservers=["1.1.1.1", "2.2.2.2", "3.3.3.3", "4.4.4.4"],
        searches=["a" * 254, *(f"{number}.example" for number in range(40))],
    )
    found, said = _told(_pod(dns_policy="None", dns_config=many), cluster_dns)
    assert found.servers == ["1.1.1.1", "2.2.2.2", "3.3.3.3"]
    assert found.searches == [f"{number}.example" for number in range(31)]
    assert said[0] == (
        "DNSConfigForming",
        "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is:"
        " 1.1.1.1 2.2.2.2 3.3.3.3",
    )
    assert said[1][1].startswith(
        "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: 0.example "
    )
    long = PodDNSConfig(searches=[f"{number}{'a' * 200}" for number in range(12)])
    found, said = _told(_pod(dns_policy="None", dns_config=long), cluster_dns)
    assert len(found.searches) == 10
    assert len(said) == 1
