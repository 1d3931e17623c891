"""Sets of CPUs, topologies, and which CPUs are taken."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pybernetes.kubelet.cpumanager.assignment import take_cpus
from pybernetes.kubelet.cpumanager.cpuset import format_cpus, parse_cpus
from pybernetes.kubelet.cpumanager.topology import CPU, Topology, read_topology

ONE_SOCKET = Topology({cpu: CPU(cpu % 4) for cpu in range(8)})
"""Four cores of two threads: 0 and 4 share one."""
TWO_SOCKETS = Topology({cpu: CPU(cpu % 6, cpu % 2, cpu % 2) for cpu in range(12)})
"""Sockets 0 and 1 with three cores of two threads each: even CPUs are on socket 0."""
NUMA_IN_SOCKETS = Topology({cpu: CPU(cpu, cpu // 8, cpu // 4) for cpu in range(16)})
"""Two sockets of two NUMA nodes of four cores."""


@given(st.sets(st.integers(0, 300)))
def test_lists_of_cpus_are_read_as_they_are_written(cpus: set[int]) -> None:
    assert parse_cpus(format_cpus(cpus)) == cpus


def test_ranges_are_written_for_neighbours() -> None:
    assert format_cpus([7, 1, 2, 3, 9]) == "1-3,7,9"
    assert parse_cpus(" 1-3,7,\n") == {1, 2, 3, 7}


@pytest.mark.parametrize("text", ["a", "1-", "3-1", "1.3", "-1", "1--2", "0x1"])
def test_what_is_no_list_of_cpus_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"invalid"):
        parse_cpus(text)


@pytest.mark.parametrize(
    ("topology", "available", "count", "expected"),
    [
        (ONE_SOCKET, "0-7", 1, "0"),
        (ONE_SOCKET, "1-7", 1, "4"),
        (ONE_SOCKET, "0-7", 2, "0,4"),
        (ONE_SOCKET, "0-1,3,4,6-7", 2, "0,4"),
        (ONE_SOCKET, "1-3,5-7", 3, "1-2,5"),
        (ONE_SOCKET, "0-7", 8, "0-7"),
        (TWO_SOCKETS, "0-11", 6, "0,2,4,6,8,10"),
        (TWO_SOCKETS, "1,3,5,7,9,11", 6, "1,3,5,7,9,11"),
        (TWO_SOCKETS, "0-11", 8, "0-2,4,6-8,10"),
        (TWO_SOCKETS, "1-11", 2, "2,8"),
        (NUMA_IN_SOCKETS, "0-15", 4, "0-3"),
        (NUMA_IN_SOCKETS, "1-15", 4, "4-7"),
        (NUMA_IN_SOCKETS, "0-15", 8, "0-7"),
        (NUMA_IN_SOCKETS, "1-15", 12, "4-15"),
        (NUMA_IN_SOCKETS, "1-15", 13, "1,4-15"),
    ],
)
def test_whole_pieces_are_taken_before_parts(topology: Topology, available: str, count: int, expected: str) -> None:
    assert take_cpus(topology, parse_cpus(available), count) == parse_cpus(expected)


def test_threads_of_many_cores_where_that_is_wanted() -> None:
    assert take_cpus(ONE_SOCKET, ONE_SOCKET.all, 3, spread=True) == {0, 1, 2}
    assert take_cpus(TWO_SOCKETS, TWO_SOCKETS.all, 4, spread=True) == {0, 2, 4, 6}


def test_more_than_there_are_is_refused() -> None:
    with pytest.raises(ValueError, match="not enough cpus available to satisfy request: requested=3, available=2"):
        take_cpus(ONE_SOCKET, frozenset({0, 1}), 3)


@given(st.sets(st.sampled_from(range(16)), min_size=1), st.data())
def test_what_is_taken_was_free_and_as_many_as_wanted(available: set[int], data: st.DataObject) -> None:
    count = data.draw(st.integers(0, len(available)))
    taken = take_cpus(NUMA_IN_SOCKETS, frozenset(available), count)
    assert len(taken) == count
    assert taken <= available


def test_this_machine_has_cpus() -> None:
    found = read_topology()
    assert found.all
    assert found.cpus_per_core >= 1
    assert found.sockets >= 1


def test_a_topology_as_the_kernel_tells_it(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu/online").write_text("0-3\n")
    for cpu, core, socket in ((0, "0,2", 0), (1, "1,3", 1), (2, "0,2", 0), (3, "1,3", 1)):
        folder = tmp_path / f"cpu/cpu{cpu}/topology"
        folder.mkdir(parents=True)
        (folder / "thread_siblings_list").write_text(core)
        (folder / "physical_package_id").write_text(str(socket))
    for node, cpus in ((0, "0,2"), (1, "1,3")):
        (tmp_path / f"node/node{node}").mkdir(parents=True)
        (tmp_path / f"node/node{node}/cpulist").write_text(cpus)
    expected = {0: CPU(0, 0, 0), 1: CPU(1, 1, 1), 2: CPU(0, 0, 0), 3: CPU(1, 1, 1)}
    assert read_topology(tmp_path) == Topology(expected)
