"""The controller manager's options as upstream's configuration and as flags."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pybernetes.controllers import configz
from pybernetes.controllers.options import Options, parse


def names(section: Any) -> set[str]:
    return {section} if isinstance(section, str) else {name for each in section.values() for name in names(each)}


def test_the_configuration_has_upstreams_form() -> None:
    options = parse(["--controllers=*,-ttl-controller", "--service-cluster-ip-range=10.0.0.0/24,fd00::/108"])
    found = configz.configuration(options)[configz.GROUP]
    assert (found["kind"], found["apiVersion"]) == (
        "KubeControllerManagerConfiguration",
        "kubecontrollermanager.config.k8s.io/v1alpha1",
    )
    assert found["Generic"]["Controllers"] == ("*", "-ttl-controller")
    assert found["Generic"]["LeaderElection"]["leaseDuration"] == "15s"
    assert found["NodeLifecycleController"]["NodeMonitorGracePeriod"] == "50s"
    assert found["CSRSigningController"]["ClusterSigningDuration"] == "8760h0m0s"
    assert found["NodeIPAMController"]["SecondaryServiceCIDR"] == "fd00::/108"
    assert found["DeviceTaintEvictionController"] == {"ConcurrentSyncs": 8}


def test_options_are_in_it_once_each_unless_the_configuration_has_no_place_for_them() -> None:
    assert {each.name for each in fields(Options)} - names(configz._SECTIONS) == {
        "client_ca_file",
        "load_balancer_pool",
        "master",
        "service_cluster_ip_range",  # in two fields
        "tls_cert_file",
        "tls_private_key_file",
        "v",
    }


def test_flags_have_gos_forms() -> None:
    flags = configz.flag_values(parse(["--controllers=*,-ttl-controller", "--allocate-node-cidrs"]))
    assert flags["controllers"] == "[*,-ttl-controller]"
    assert (flags["allocate-node-cidrs"], flags["leader-elect-retry-period"]) == ("true", "2s")
    assert (flags["node-eviction-rate"], flags["kube-api-qps"], flags["master"]) == ("0.1", "0", "")
