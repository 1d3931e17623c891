"""Results in all versions of the specification."""

from __future__ import annotations

from typing import Any

import pytest

from pybernetes.cni import results
from pybernetes.cni.errors import CNIError
from pybernetes.cni.versions import SUPPORTED, at_least

RESULT: results.Result = {
    "interfaces": [{"name": "cni0", "mac": "02:00:00:00:00:01", "mtu": 1450}, {"name": "eth0", "sandbox": "/ns"}],
    "ips": [
        {"interface": 1, "address": "10.1.0.2/24", "gateway": "10.1.0.1"},
        {"interface": 1, "address": "10.2.0.2/24"},
        {"interface": 1, "address": "fd00::2/64", "gateway": "fd00::1"},
    ],
    "routes": [{"dst": "0.0.0.0/0", "mtu": 1400}, {"dst": "::/0", "gw": "fd00::1"}],
    "dns": {"nameservers": ["10.1.0.1"]},
}


def test_what_a_new_version_says_is_read_back_whole() -> None:
    assert results.read(results.written(RESULT, "1.1.0")) == RESULT


def test_version_1_0_has_no_sizes_of_links() -> None:
    printed = results.written(RESULT, "1.0.0")
    assert printed["cniVersion"] == "1.0.0"
    assert printed["interfaces"][0] == {"name": "cni0", "mac": "02:00:00:00:00:01"}
    assert "version" not in printed["ips"][0]


def test_version_0_4_says_the_version_of_each_address() -> None:
    printed = results.written(RESULT, "0.4.0")
    assert [ip["version"] for ip in printed["ips"]] == ["4", "4", "6"]
    assert results.read(printed)["ips"] == RESULT["ips"]


def test_version_0_2_has_one_address_of_each_family_with_its_routes() -> None:
    assert results.written(RESULT, "0.2.0") == {
        "cniVersion": "0.2.0",
        "ip4": {"ip": "10.1.0.2/24", "gateway": "10.1.0.1", "routes": [{"dst": "0.0.0.0/0"}]},
        "ip6": {"ip": "fd00::2/64", "gateway": "fd00::1", "routes": [{"dst": "::/0", "gw": "fd00::1"}]},
        "dns": {"nameservers": ["10.1.0.1"]},
    }
    back = results.read(results.written(RESULT, "0.1.0"))
    assert [ip["address"] for ip in back["ips"]] == ["10.1.0.2/24", "fd00::2/64"]
    assert back["routes"] == [{"dst": "0.0.0.0/0"}, {"dst": "::/0", "gw": "fd00::1"}]


@pytest.mark.parametrize("version", SUPPORTED)
def test_every_version_says_which_it_is(version: str) -> None:
    printed = results.written(RESULT, version)
    assert printed["cniVersion"] == version
    assert ("ip4" in printed) == (not at_least(version, "0.3.0"))


def test_a_result_without_a_version_is_of_the_configurations() -> None:
    assert results.read({"ips": [{"address": "10.0.0.1/24"}]}, "1.0.0")["ips"] == [{"address": "10.0.0.1/24"}]
    assert "ips" not in results.read({"ips": [{"address": "10.0.0.1/24"}]})  # 0.1.0 has no such field


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ({"cniVersion": "7.0.0"}, 'unsupported CNI result version "7.0.0"'),
        ({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.1"}]}, "ips: invalid CIDR address: 10.0.0.1"),
        ({"cniVersion": "1.0.0", "ips": [{}]}, "ips: invalid CIDR address: None"),
        ({"cniVersion": "1.0.0", "ips": "x"}, "ips: must be a list"),
        ({"cniVersion": "1.0.0", "ips": ["x"]}, "ips: must be a list of objects"),
        ({"cniVersion": "1.0.0", "routes": [{"dst": "x"}]}, "routes: invalid CIDR address: x"),
        ({"cniVersion": "1.0.0", "ips": [{"address": "10.0.0.1/8", "gateway": "z"}]}, "ips: invalid IP address: z"),
        ({"cniVersion": "1.0.0", "dns": []}, "dns: must be an object"),
        ({"cniVersion": "0.2.0", "ip4": {}}, None),
    ],
)
def test_what_no_result_may_look_like(printed: dict[str, Any], message: str | None) -> None:
    if message is None:
        assert results.read(printed) == {"dns": {}}
        return
    with pytest.raises(CNIError) as refusal:
        results.read(printed)
    assert str(refusal.value).startswith(message)


def test_a_result_without_addresses_has_no_old_version() -> None:
    with pytest.raises(CNIError, match="cannot convert: no valid IP addresses"):
        results.written({}, "0.2.0")
    with pytest.raises(CNIError, match="unsupported CNI result version"):
        results.written({}, "2.0.0")
