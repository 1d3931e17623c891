"""What to attach and detach, decided without a server."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from controllers.persistentvolume.makers import volume

from pybernetes.api.core.v1 import Pod, Volume
from pybernetes.api.storage.v1 import VolumeAttachment, VolumeAttachmentStatus
from pybernetes.controllers.persistentvolume.attachments import (
    Attachable,
    NodeState,
    Plan,
    attachable,
    attachment,
    attachment_name,
    blocking_message,
    plan,
    uses_volumes,
)

DISK = Attachable("kubernetes.io/csi/d^h", "pv", exclusive=True, persistent_volume="pv")
LOCAL = Attachable("kubernetes.io/iscsi/p:i:0", "pv2")
GOOD = NodeState(exists=True, managed=True, healthy=True)
SILENT = NodeState(exists=True, managed=True, in_use=frozenset({DISK.name}))


def order(attached: bool = True, deleted: bool = False) -> VolumeAttachment:
    made = attachment(DISK, "n")
    made.status = VolumeAttachmentStatus(attached=attached)
    if deleted and made.metadata:
        made.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    return made


def decide(node: NodeState, wanted: list[Attachable], held: dict[str, Any], **more: Any) -> Plan:
    elsewhere = more.pop("elsewhere", False)
    unwanted = more.pop("unwanted", {})
    return plan(node, wanted, held, lambda _: elsewhere, unwanted, more.pop("now", 1000.0), **more)


def test_attachments_are_called_as_kubelets_compute() -> None:
    # echo -n hdn | sha256sum
    assert attachment_name("kubernetes.io/csi/d^h", "n") == (
        "csi-9072ed11cc1acb5fa433a877ff339b6311d013f33bddd1d0092711a8ace5b16d"
    )


@pytest.mark.parametrize(
    ("has", "expected"),
    [
        ({"csi": {"driver": "d", "volumeHandle": "h"}}, Attachable("kubernetes.io/csi/d^h", "v", True, "v")),
        (
            {"csi": {"driver": "d", "volumeHandle": "h"}, "accessModes": ["ReadWriteOnce", "ReadOnlyMany"]},
            Attachable("kubernetes.io/csi/d^h", "v", False, "v"),
        ),
        ({"csi": {"driver": "no", "volumeHandle": "h"}}, None),
        ({"hostPath": {"path": "/"}}, None),
    ],
)
def test_what_has_to_be_attached_for_a_claim(has: dict[str, Any], expected: Attachable | None) -> None:
    assert attachable(Volume(name="x"), volume(**has), lambda driver: driver != "no") == expected


def test_volumes_in_pods_themselves() -> None:
    fc = {"name": "x", "fc": {"targetWWNs": ["a", "b"], "lun": 2}}
    assert attachable(msgspec.convert(fc, Volume), None, lambda _: True) == Attachable("kubernetes.io/fc/[a b]:2", "x")
    inline = {"name": "x", "csi": {"driver": "d"}}
    assert attachable(msgspec.convert(inline, Volume), None, lambda _: True) is None


class TestWanted:
    def test_is_ordered(self) -> None:
        assert decide(GOOD, [DISK], {}).create == [DISK]

    def test_is_ordered_again_if_the_order_is_gone(self) -> None:
        found = decide(GOOD, [DISK], {DISK.name: None})
        assert (found.create, found.report) == ([DISK], [])

    @pytest.mark.parametrize(
        ("held", "reported"), [(order(), True), (order(attached=False), False), (order(deleted=True), False)]
    )
    def test_is_reported_when_it_is_attached(self, held: VolumeAttachment, reported: bool) -> None:
        found = decide(GOOD, [DISK], {DISK.name: held})
        assert (found.report == [DISK.name]) == reported
        assert not found.create
        assert not found.detach

    def test_waits_for_another_node(self) -> None:
        found = decide(GOOD, [DISK], {}, elsewhere=True)
        assert (found.blocked, found.create) == ([DISK], [])

    def test_needs_no_order_if_nodes_attach_it(self) -> None:
        assert decide(GOOD, [LOCAL], {}) == Plan(report=[LOCAL.name])


class TestUnwanted:
    def test_is_detached_and_not_reported(self) -> None:
        found = decide(GOOD, [], {DISK.name: order()})
        assert [each.forced for each in found.detach] == [""]
        assert not found.report
        assert found.unwanted == {DISK.name: 1000.0}

    @pytest.mark.parametrize(
        ("node", "waited", "force", "detached", "forced"),
        [
            (SILENT, 0.0, True, False, ""),
            (SILENT, 360.0, True, False, ""),
            (SILENT, 361.0, True, True, "timeout"),
            (SILENT, 361.0, False, False, ""),
            (NodeState(True, True, True, False, frozenset({DISK.name})), 361.0, True, False, ""),
            (NodeState(True, True, False, True, frozenset({DISK.name})), 0.0, True, True, "out-of-service"),
            (NodeState(True, True, False, True, frozenset({DISK.name})), 0.0, False, True, "out-of-service"),
            (NodeState(), 0.0, True, True, ""),
        ],
    )
    def test_stays_while_it_is_in_use(
        self, node: NodeState, waited: float, force: bool, detached: bool, forced: str
    ) -> None:
        found = decide(node, [], {DISK.name: order()}, unwanted={DISK.name: 1000.0 - waited}, force=force)
        assert [each.forced for each in found.detach] == ([forced] if detached else [])
        assert (found.report == [DISK.name]) == (not detached)
        if not detached and force and not node.healthy:
            assert found.again == pytest.approx(360.0 - waited + 0.001)


@pytest.mark.parametrize(
    ("status", "deleted", "uses"),
    [
        ({"phase": "Running"}, False, True),
        ({"phase": "Succeeded"}, False, False),
        ({"phase": "Running"}, True, False),
        ({"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running": {}}}]}, True, True),
        ({"phase": "Running", "containerStatuses": [{"name": "c", "state": {"terminated": {}}}]}, True, False),
    ],
)
def test_who_uses_volumes(status: dict[str, Any], deleted: bool, uses: bool) -> None:
    metadata = {"name": "p", "deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {"name": "p"}
    assert uses_volumes(msgspec.convert({"metadata": metadata, "status": status}, Pod)) == uses


@pytest.mark.parametrize(
    ("users", "text"),
    [
        ([("ns", "b"), ("ns", "a")], "Volume is already used by pod(s) a, b"),
        ([("ns", "a"), ("x", "y")], "Volume is already used by pod(s) a and 1 pod(s) in different namespaces"),
        ([("x", "y")], "Volume is already used by 1 pod(s) in different namespaces"),
        ([], "Volume is already exclusively attached to one node, waiting on detach before"),
    ],
)
def test_messages_contain_no_names_from_other_namespaces(users: list[tuple[str, str]], text: str) -> None:
    pods = [msgspec.convert({"metadata": {"namespace": where, "name": name}}, Pod) for where, name in users]
    assert blocking_message("pv", "ns", pods).startswith(f'Waiting for detach for volume "pv" {text}')
