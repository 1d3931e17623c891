"""The configuration in Corefile syntax."""

import pytest

from pybernetes.dns import corefile, pods
from pybernetes.dns.corefile import CorefileError
from pybernetes.dns.message import AAAA, A

FILES = {
    "/etc/resolv.conf": "search corp.example example\nnameserver 10.0.0.2\nnameserver fe80::1%eth0\nnameserver x\n",
    "/etc/hosts": "10.9.9.9 printer printer.corp # old\n",
}


def test_the_default_configuration() -> None:
    (block,) = corefile.parse(corefile.DEFAULT, FILES.__getitem__)
    assert (block.zones, block.cluster_zone, block.pods, block.ttl) == ([""], "cluster.local", pods.INSECURE, 30)
    assert block.forward == [("10.0.0.2", 53), ("fe80::1", 53)]
    assert block.autopath
    assert (block.longest_ttl, block.denial_ttl) == (30, 30)
    assert corefile.search_domains(FILES["/etc/resolv.conf"]) == ["corp.example", "example"]


def test_stub_domains_and_hosts() -> None:
    text = """
    corp.example:53 { # a stub domain
        forward . 10.0.0.5:5353 [fd00::5]:54 fd00::6
    }
    . {
        hosts /etc/hosts {
            10.1.1.1 a.example b.example
            fd00::1 a.example
            fallthrough
        }
    }
    """
    stub, rest = corefile.parse(text, FILES.__getitem__)
    assert stub.zones == ["corp.example"]
    assert stub.forward == [("10.0.0.5", 5353), ("fd00::5", 54), ("fd00::6", 53)]
    assert {key: len(records) for key, records in rest.hosts.items()} == {
        ("a.example", A): 1,
        ("a.example", AAAA): 1,
        ("b.example", A): 1,
        ("printer", A): 1,
        ("printer.corp", A): 1,
    }


def test_options_of_cache_forward_and_hosts() -> None:
    text = """
    . {
        cache 30 { denial 9984 5 }
        forward . 10.0.0.5 { max_concurrent 20; policy sequential }
        hosts { 10.1.1.1 a.example; ttl 60 }
    }
    a.corp b.corp { forward corp 10.0.0.6; cache }
    """
    first, second = corefile.parse(text)
    assert (first.longest_ttl, first.denial_ttl, first.max_concurrent) == (30, 5, 20)
    assert [record.ttl for record in first.hosts["a.example", A]] == [60]
    assert (second.forward, second.longest_ttl, second.denial_ttl) == ([("10.0.0.6", 53)], 3600, 30)


KUBEADM = """
.:53 {
    errors
    health {
       lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
       pods insecure
       fallthrough in-addr.arpa ip6.arpa
       ttl 30
    }
    prometheus :9153
    forward . /etc/resolv.conf {
       max_concurrent 1000
    }
    cache 30 {
       disable success cluster.local
       disable denial cluster.local
    }
    loop
    reload
    loadbalance
}
"""


def test_the_configuration_of_kubeadm() -> None:
    (block,) = corefile.parse(KUBEADM, FILES.__getitem__)
    assert (block.longest_ttl, block.denial_ttl, block.max_concurrent) == (30, 30, 1000)


def test_zones_and_least_times_of_cache() -> None:
    (block,) = corefile.parse(". {\n cache 7200 . {\n success 9984 20 5\n servfail 5s\n }\n}")
    assert (block.longest_ttl, block.denial_ttl) == (20, 3600)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (". {\n forward corp.example 10.0.0.5\n}", "line 2: forward for corp.example alone takes a server block"),
        (". {\n forward . 10.0.0.5\n forward . 10.0.0.6\n}", "line 3: a server block has one forward"),
        (". {\n forward . 10.0.0.5 {\n except corp.example\n }\n}", "line 3: forward has no option 'except'"),
        (". {\n cache 30 corp.example\n}", "line 2: cache for corp.example alone takes a server block of its own"),
        (". {\n cache {\n success abc\n }\n}", "line 3: success takes a number"),
        (". {\n cache {\n denial\n }\n}", "line 3: denial takes a capacity"),
        (". {\n cache {\n disable success corp.example\n }\n}", "line 3: cache has no option 'disable'"),
        (". {\n cache {\n disable success\n }\n}", "line 3: cache has no option 'disable'"),
        (". {\n kubernetes cluster.local {\n endpoint_pod_names\n }\n}", "no option 'endpoint_pod_names'"),
        ("", "no server block"),
        (". {", "not closed"),
        ("}", "line 1: a closing brace"),
        ("{ }", "line 1: a block without a name"),
        (". {\n template IN A\n}", "line 2: the plugin 'template' is not known"),
        (". {\n forward . nowhere\n}", "line 2: 'nowhere' is no address"),
        (". {\n forward . tls://9.9.9.9\n}", "TLS is not supported"),
        (". {\n forward .\n}", "forward takes a zone and servers"),
        (". {\n autopath @kubernetes\n}", "without the plugin kubernetes"),
        (". {\n kubernetes cluster.local {\n ttl 1e9\n }\n}", "line 3: ttl takes a number"),
        (". {\n kubernetes cluster.local {\n pods maybe\n }\n}", "line 3: pods takes"),
        (". {\n kubernetes a b\n}", "kubernetes takes one zone"),
        (". { }\n. { }", "line 2: the zone . has a server block already"),
        (".:99999 { }", "no valid port"),
        (". {\n hosts {\n x a\n }\n}", "'x' is no address"),
        ("a { b { c { d { } } } }", "nested too deeply"),
    ],
)
def test_a_wrong_configuration_is_refused_with_its_line(text: str, problem: str) -> None:
    with pytest.raises(CorefileError, match=problem):
        corefile.parse(text, FILES.__getitem__)
