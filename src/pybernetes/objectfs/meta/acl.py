"""POSIX access control lists: their form as extended attributes, and how they and the mode follow each other.

The kernel checks permissions by the list it reads from `system.posix_acl_access`; what is left to a file system is to
keep mode and list in step, and to let new files inherit `system.posix_acl_default`. Pure functions.
"""

from __future__ import annotations

from errno import EINVAL
from struct import Struct
from typing import NamedTuple

from pybernetes.objectfs.meta.records import fail

ACCESS, DEFAULT = b"system.posix_acl_access", b"system.posix_acl_default"
VERSION = 2
USER_OBJ, USER, GROUP_OBJ, GROUP, MASK, OTHER = 1, 2, 4, 8, 16, 32
_HEAD = Struct("<I")
_ENTRY = Struct("<HHI")
NO_ID = 0xFFFFFFFF


class Rule(NamedTuple):
    tag: int
    permissions: int
    id: int


def decode(value: bytes) -> list[Rule]:
    """The rules of an attribute, or EINVAL."""
    if len(value) < _HEAD.size or (len(value) - _HEAD.size) % _ENTRY.size or _HEAD.unpack_from(value)[0] != VERSION:
        raise fail(EINVAL)
    rules = [Rule(*each) for each in _ENTRY.iter_unpack(value[_HEAD.size :])]
    tags = [each.tag for each in rules]
    if any(tags.count(tag) != 1 for tag in (USER_OBJ, GROUP_OBJ, OTHER)) or tags.count(MASK) > 1:
        raise fail(EINVAL)
    if (USER in tags or GROUP in tags) and MASK not in tags:
        raise fail(EINVAL)
    if any(each.permissions > 7 or each.tag not in (1, 2, 4, 8, 16, 32) for each in rules):
        raise fail(EINVAL)
    return rules


def encode(rules: list[Rule]) -> bytes:
    return _HEAD.pack(VERSION) + b"".join(_ENTRY.pack(*each) for each in rules)


def is_plain(rules: list[Rule]) -> bool:
    """True for a list that says no more than a mode does."""
    return len(rules) == 3


def mode_of(rules: list[Rule], mode: int) -> int:
    """The mode of a file that gets this access list: the group's bits are the mask's, if there is one."""
    by_tag = {each.tag: each.permissions for each in rules}
    group = by_tag.get(MASK, by_tag[GROUP_OBJ])
    return (mode & ~0o777) | by_tag[USER_OBJ] << 6 | group << 3 | by_tag[OTHER]


def changed_mode(rules: list[Rule], mode: int) -> list[Rule]:
    """The access list after chmod(2)."""
    group = MASK if any(each.tag == MASK for each in rules) else GROUP_OBJ
    new = {USER_OBJ: mode >> 6 & 7, group: mode >> 3 & 7, OTHER: mode & 7}
    return [each._replace(permissions=new.get(each.tag, each.permissions)) for each in rules]


def inherited(default: list[Rule], mode: int) -> tuple[list[Rule], int]:
    """The access list and mode of a file made with `mode` in a directory with a default list."""
    group = MASK if any(each.tag == MASK for each in default) else GROUP_OBJ
    most = {USER_OBJ: mode >> 6 & 7, group: mode >> 3 & 7, OTHER: mode & 7}
    rules = [each._replace(permissions=each.permissions & most.get(each.tag, 7)) for each in default]
    return rules, mode_of(rules, mode)
