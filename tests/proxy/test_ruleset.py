"""What a change of a Service changes in the kernel's maps."""

from __future__ import annotations

import socket

from hypothesis import given
from hypothesis import strategies as st
from proxy.services import endpoint_slice, service

from pybernetes.api.core.v1 import Service
from pybernetes.api.discovery.v1 import EndpointSlice
from pybernetes.network.nftables.datatypes import port
from pybernetes.proxy import frontends
from pybernetes.proxy.endpoints import NodeFacts
from pybernetes.proxy.frontends import ENDPOINTS, FAMILIES, FRONTENDS, Entries, Route, compile_service
from pybernetes.proxy.ruleset import Ruleset

NODE = NodeFacts("here")


def entries(one: Service, *slices: EndpointSlice) -> Entries:
    return compile_service(one, slices, NODE, FAMILIES[0]).entries


def test_one_more_endpoint_is_one_more_element_and_another_chain() -> None:
    ruleset = Ruleset()
    for number in range(100):
        ruleset.replace(f"default/{number}", entries(service(ip=f"10.96.1.{number}"), endpoint_slice("10.1.0.1")))
    ruleset.committed()
    ruleset.replace("default/7", entries(service(ip="10.96.1.7"), endpoint_slice("10.1.0.1", "10.1.0.2")))
    change = ruleset.change()
    key = socket.inet_aton("10.96.1.7") + b"\x06\0\0\0" + port(80)
    assert change.deleted == {FRONTENDS: [key]}
    assert change.added == {
        FRONTENDS: [(key, Route("cluster", 2))],
        ENDPOINTS: [(key + b"\1\0\0\0", socket.inet_aton("10.1.0.2") + port(8080))],
    }
    assert change.new_routes == [Route("cluster", 2)]
    assert change.unused_routes == []


def test_the_last_user_of_a_chain_takes_it_along() -> None:
    ruleset = Ruleset()
    ruleset.replace("default/web", entries(service(), endpoint_slice("10.1.0.1")))
    ruleset.committed()
    ruleset.replace("default/web", {})
    assert ruleset.change().unused_routes == [Route("cluster", 1)]
    assert len(ruleset) == 0


def test_of_two_services_with_one_external_ip_the_first_is_served_until_it_goes() -> None:
    one = entries(service("one", externalIPs=["192.0.2.9"]), endpoint_slice("10.1.0.1"))
    two = entries(service("two", "10.96.0.11", externalIPs=["192.0.2.9"]), endpoint_slice("10.1.0.1", "10.1.0.2"))
    key = socket.inet_aton("192.0.2.9") + b"\x06\0\0\0" + port(80)
    ruleset = Ruleset()
    ruleset.replace("one", one)
    ruleset.replace("two", two)
    assert dict(ruleset.everything().added[FRONTENDS])[key] == Route("external", 1)
    ruleset.committed()
    ruleset.replace("one", {})
    assert dict(ruleset.change().added[FRONTENDS])[key] == Route("external", 2)
    ruleset.replace("two", {})
    assert ruleset.everything().added == {}


SERVICES = st.integers(0, 3).map(str)
COUNTS = st.integers(0, 4)


@given(st.lists(st.tuples(SERVICES, COUNTS, st.booleans(), st.booleans())))
def test_any_order_of_changes_ends_where_a_fresh_start_would(steps: list[tuple[str, int, bool, bool]]) -> None:
    """The kernel is a dict here: changes made one after another give what `everything` gives."""
    ruleset, kernel = Ruleset(), dict[tuple[str, bytes], object]()
    chains: set[Route] = set()
    last: dict[str, Entries] = {}
    for name, count, shared, flush in steps:
        one = service(name, f"10.96.0.{name}", externalIPs=["192.0.2.9"] if shared else [])
        made = entries(one, endpoint_slice(*(f"10.1.0.{n}" for n in range(1, count + 1)))) if count else {}
        ruleset.replace(name, made)
        last.pop(name, None)
        last[name] = made
        if flush:
            change = ruleset.change()
            assert not set(change.new_routes) & chains
            chains |= set(change.new_routes)
            for where, keys in change.deleted.items():
                for key in keys:
                    del kernel[where, key]
            for where, found in change.added.items():
                for key, value in found:
                    assert (where, key) not in kernel
                    assert not isinstance(value, Route) or value in chains
                    kernel[where, key] = value
            chains -= set(change.unused_routes)
            ruleset.committed()
            whole = ruleset.everything()
            assert kernel == {(where, key): value for where, found in whole.added.items() for key, value in found}
            assert chains == set(whole.new_routes)
    wanted = {(where, key) for made in last.values() for where, found in made.items() for key in found}
    whole = ruleset.everything()
    assert {(where, key) for where, found in whole.added.items() for key, _ in found} == wanted


def test_services_that_others_serve_have_no_entries() -> None:
    slices = endpoint_slice("10.1.0.1")
    assert entries(service(ip="None"), slices) == {}
    assert entries(service(type="ExternalName", externalName="example.org"), slices) == {}
    assert entries(service(labels={frontends.PROXY_NAME_LABEL: "other"}), slices) == {}
