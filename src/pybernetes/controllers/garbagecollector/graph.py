"""The owner graph by UID, built from observed objects; it returns the objects to look at again.

Pure: no IO and no time. An observation changes the graph and leaves work in `actions`: nodes to try to delete, nodes to
orphan the dependents of, owners in the wrong namespace to report. The collector around it does the work and feeds back
what the API server says does not exist (`absent`).

An owner that is named before it is seen becomes a *virtual* node: its coordinates are only what a dependent claims.
It is looked up, and goes when the server says that it is not there. Dependents may disagree about the coordinates of
one UID (or lie); a virtual node then takes each claimed identity in turn, and only the dependents whose own claim was
refuted are collected. An observed node cannot be removed by a refuted claim.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pybernetes.api.meta.v1 import ObjectMeta, OwnerReference

FOREGROUND_FINALIZER: Final = "foregroundDeletion"
ORPHAN_FINALIZER: Final = "orphan"

ABSENT_OWNERS: Final = 500
"""How many absent owners are remembered, as upstream."""


class Identity(NamedTuple):
    """Where an object is, or is said to be. The order of the fields is the order in which claims are tried."""

    kind: str
    api_version: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"[{self.api_version}/{self.kind}, namespace: {self.namespace}, name: {self.name}, uid: {self.uid}]"


def identity_of(owner: OwnerReference, namespace: str) -> Identity:
    """The identity in an owner reference; the owner is in its dependent's namespace."""
    return Identity(owner.kind or "", owner.api_version or "", namespace, owner.name or "", owner.uid or "")


class Node:
    """An object in the graph. Compared by identity; replaced, not changed, when its coordinates change."""

    __slots__ = ("being_deleted", "deleting_dependents", "dependents", "identity", "owners", "virtual")

    def __init__(self, identity: Identity, owners: Sequence[OwnerReference] = (), *, virtual: bool = False) -> None:
        self.identity = identity
        self.owners = owners
        self.virtual = virtual
        self.being_deleted = False
        self.deleting_dependents = False
        self.dependents: dict[Node, None] = {}
        """In the order they came; what is queued is then the same in every run."""

    def moved(self, identity: Identity) -> Node:
        """The same node under other coordinates."""
        node = Node(identity, self.owners, virtual=self.virtual)
        node.being_deleted, node.deleting_dependents = self.being_deleted, self.deleting_dependents
        node.dependents = dict(self.dependents)
        return node

    def blocking_dependents(self) -> list[Node]:
        """Dependents that say that this one must not go before them."""
        uid = self.identity.uid
        return [each for each in self.dependents if any(o.uid == uid and o.block_owner_deletion for o in each.owners)]

    def __repr__(self) -> str:
        return f"Node({self.identity}{', virtual' if self.virtual else ''})"


@dataclass
class Actions:
    """The actions that follow from an observation."""

    delete: list[Node] = field(default_factory=list)
    """Try to delete: look the object and its owners up, and decide."""
    delete_later: list[Node] = field(default_factory=list)
    """The same, after a pause: another claim about an owner that was already refuted once."""
    orphan: list[Node] = field(default_factory=list)
    """Take it out of its dependents' owner references, then its finalizer off."""
    invalid: list[tuple[Node, OwnerReference]] = field(default_factory=list)
    """Dependents whose owner is in another namespace, to be reported."""


class AbsentOwners:
    """Identities that are known not to exist; the oldest are forgotten."""

    def __init__(self, size: int = ABSENT_OWNERS) -> None:
        self._size = size
        self._known: OrderedDict[Identity, None] = OrderedDict()

    def add(self, identity: Identity) -> None:
        """Remember that this does not exist."""
        self._known[identity] = None
        self._known.move_to_end(identity)
        if len(self._known) > self._size:
            self._known.popitem(last=False)

    def __contains__(self, identity: Identity) -> bool:
        if identity not in self._known:
            return False
        self._known.move_to_end(identity)
        return True


class Graph:
    """All nodes by UID."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.absent_owners = AbsentOwners()

    def observed(self, api_version: str, kind: str, metadata: ObjectMeta, old: ObjectMeta | None = None) -> Actions:
        """An object was seen: added or changed; `old` is how it was seen before, if it was."""
        actions = Actions()
        identity = _identity(api_version, kind, metadata)
        owners = metadata.owner_references or []
        node = self._confirm(identity, actions)
        if node is None:
            node = Node(identity, owners)
            node.being_deleted = metadata.deletion_timestamp is not None
            node.deleting_dependents = is_deleting_dependents(metadata)
            self.nodes[identity.uid] = node
            self._add_to_owners(node, owners, actions)
        else:
            self._change_owners(node, owners, actions)
            node.being_deleted |= metadata.deletion_timestamp is not None
        if _begins(metadata, old, ORPHAN_FINALIZER):
            actions.orphan.append(node)
        elif _begins(metadata, old, FOREGROUND_FINALIZER):
            node.deleting_dependents = True
            actions.delete += node.dependents
            actions.delete.append(node)
        return actions

    def gone(self, api_version: str, kind: str, metadata: ObjectMeta) -> Actions:
        """An object was seen to be deleted."""
        actions = Actions()
        identity = _identity(api_version, kind, metadata)
        node = self._confirm(identity, actions)
        if node is not None:
            self._remove(node, identity, actions)
        return actions

    def absent(self, identity: Identity) -> Actions:
        """The API server says that there is no such object, or that one of this name has another UID."""
        actions = Actions()
        node = self.nodes.get(identity.uid)
        if node is None:
            return actions
        if node.virtual:
            agree, disagree = partition(node.dependents, identity)
            if not disagree:
                self._remove(node, identity, actions)
                return actions
            self._refuted(identity, agree, actions)
            if node.identity == identity:
                other = alternate_identity(disagree, identity)
                if other is not None:
                    replacement = node.moved(other)
                    self.nodes[identity.uid] = replacement
                    actions.delete_later.append(replacement)
        elif node.identity == identity:
            self._remove(node, identity, actions)
        else:
            self._refuted(identity, partition(node.dependents, identity)[0], actions)
        return actions

    def _confirm(self, identity: Identity, actions: Actions) -> Node | None:
        """The node of an object that was seen; if it was virtual, its coordinates are known from now on."""
        node = self.nodes.get(identity.uid)
        if node is None or not node.virtual:
            return node
        if identity != node.identity:
            for dependent in partition(node.dependents, identity)[1]:
                if identity.namespace and dependent.identity.namespace != identity.namespace:
                    _report(dependent, identity.uid, actions)
                actions.delete.append(dependent)
            node = self.nodes[identity.uid] = node.moved(identity)
        node.virtual = False
        return node

    def _add_to_owners(self, node: Node, owners: Iterable[OwnerReference], actions: Actions) -> None:
        namespace = node.identity.namespace
        suspicious = False
        for owner in owners:
            uid = owner.uid or ""
            found = self.nodes.get(uid)
            if found is None:
                found = self.nodes[uid] = Node(identity_of(owner, namespace), virtual=True)
                found.dependents[node] = None
                actions.delete.append(found)
                continue
            found.dependents[node] = None
            if suspicious:
                continue
            theirs = found.identity.namespace
            if theirs and theirs != namespace:
                if not found.virtual:
                    _report(node, uid, actions)
                suspicious = True
            elif not _same_coordinates(owner, found.identity) or (not theirs and namespace and found.virtual):
                # The second: a virtual owner that a cluster-scoped dependent named may be of a namespaced kind.
                suspicious = True
        if suspicious:
            actions.delete.append(node)

    def _change_owners(self, node: Node, owners: Sequence[OwnerReference], actions: Actions) -> None:
        before = {each.uid: each for each in node.owners}
        added = []
        for owner in owners:
            old = before.pop(owner.uid, None)
            if old is None:
                added.append(owner)
            elif old.block_owner_deletion and not owner.block_owner_deletion:
                self._retry(owner, actions)
        for removed in before.values():
            if removed.block_owner_deletion:
                self._retry(removed, actions)
        node.owners = owners
        self._add_to_owners(node, added, actions)
        for removed in before.values():
            found = self.nodes.get(removed.uid or "")
            if found is not None:
                found.dependents.pop(node, None)

    def _retry(self, owner: OwnerReference, actions: Actions) -> None:
        """An owner that may be waiting for its dependents has one less to wait for."""
        node = self.nodes.get(owner.uid or "")
        if node is not None:
            actions.delete.append(node)

    def _remove(self, node: Node, identity: Identity, actions: Actions) -> None:
        self.nodes.pop(node.identity.uid, None)
        if node.dependents:
            self.absent_owners.add(identity)
        actions.delete += node.dependents
        for owner in node.owners:
            found = self.nodes.get(owner.uid or "")
            if found is not None:
                found.dependents.pop(node, None)
                if found.deleting_dependents:
                    actions.delete.append(found)

    def _refuted(self, identity: Identity, dependents: Sequence[Node], actions: Actions) -> None:
        if dependents:
            self.absent_owners.add(identity)
            actions.delete += dependents


def is_deleting_dependents(metadata: ObjectMeta) -> bool:
    """Whether the object waits for its dependents to go first."""
    return metadata.deletion_timestamp is not None and FOREGROUND_FINALIZER in (metadata.finalizers or ())


def partition(dependents: Iterable[Node], identity: Identity) -> tuple[list[Node], list[Node]]:
    """Dependents that claim exactly this owner, and those that claim its UID with other coordinates; some do both."""
    agree, disagree = [], []
    for each in dependents:
        if identity.namespace and each.identity.namespace != identity.namespace:
            disagree.append(each)
            continue
        claims = [_same_coordinates(owner, identity) for owner in each.owners if owner.uid == identity.uid]
        if any(claims):
            agree.append(each)
        if not all(claims):
            disagree.append(each)
    return agree, disagree


def alternate_identity(dependents: Iterable[Node], absent: Identity) -> Identity | None:
    """The next claim about an owner after one was refuted: in order, and from the start when all were tried."""
    cluster_scoped = not absent.namespace
    claims = set()
    for each in dependents:
        for owner in each.owners:
            if owner.uid != absent.uid:
                continue
            claim = identity_of(owner, each.identity.namespace)
            if cluster_scoped and (claim.api_version, claim.kind) == (absent.api_version, absent.kind):
                claim = claim._replace(namespace="")
            if claim != absent:
                claims.add(claim)
    following = [each for each in claims if each > absent]
    return min(following or claims, default=None)


def _identity(api_version: str, kind: str, metadata: ObjectMeta) -> Identity:
    return Identity(kind, api_version, metadata.namespace or "", metadata.name or "", metadata.uid or "")


def _same_coordinates(owner: OwnerReference, identity: Identity) -> bool:
    return (owner.kind, owner.api_version, owner.name, owner.uid) == (
        identity.kind,
        identity.api_version,
        identity.name,
        identity.uid,
    )


def _begins(new: ObjectMeta, old: ObjectMeta | None, finalizer: str) -> bool:
    return _waits(new, finalizer) and not (old is not None and _waits(old, finalizer))


def _waits(metadata: ObjectMeta, finalizer: str) -> bool:
    return metadata.deletion_timestamp is not None and finalizer in (metadata.finalizers or ())


def _report(node: Node, uid: str, actions: Actions) -> None:
    for owner in node.owners:
        if owner.uid == uid:
            actions.invalid.append((node, owner))
            return
