"""Ports that are free now and still free when their server listens."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

import pytest

from pybernetes.cluster import addresses, starting
from pybernetes.cluster.addresses import LOOPBACK, PORTS, free_port
from pybernetes.cluster.errors import ClusterError


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> range:
    """Three ports to choose from, all of them free."""
    while True:
        first = free_port(LOOPBACK)
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            found = range(first, first + 3)
            for port in found:
                stack.enter_context(socket.create_server((LOOPBACK, port)))
            break
    monkeypatch.setattr(addresses, "PORTS", found)
    return found


def test_a_free_port_is_none_that_the_kernel_gives_to_connections() -> None:
    first, last = map(int, Path(addresses.KERNELS).read_text().split())
    if first < PORTS[-1]:
        pytest.skip("the kernel gives these to connections")
    found = {free_port(LOOPBACK) for _ in range(50)}
    assert len(found) > 40
    assert not any(first <= each <= last for each in found)


def test_ports_of_others_are_passed_over(few: range) -> None:
    with socket.create_server((LOOPBACK, few[0])):
        assert {free_port(LOOPBACK, apart_from=few[1:2]) for _ in range(20)} == {few[2]}


@pytest.mark.parametrize("kernels", ["1024 65535", "nonsense", None])
def test_where_the_kernel_may_give_any_to_connections_it_chooses(
    few: range, kernels: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "range"
    if kernels is not None:
        file.write_text(kernels)
    monkeypatch.setattr(addresses, "KERNELS", str(file))
    assert free_port(LOOPBACK) not in few


def test_an_address_of_another_machine_is_an_error() -> None:
    with pytest.raises(OSError, match="Cannot assign requested address"):
        free_port("192.0.2.1")
    with pytest.raises(ClusterError, match="port 0 cannot be used: Cannot assign requested address"):
        starting._free_port(0, "192.0.2.1")


def test_a_chosen_port_may_be_in_use_at_another_address(few: range) -> None:
    """The API server's is chosen at the address of the nodes; others listen at the loopback's then."""
    with socket.create_server((LOOPBACK, few[0])):
        assert starting._free_port(0, apart_from=(few[0],)) in few[1:]
