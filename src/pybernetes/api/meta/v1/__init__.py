"""Every class of meta/v1.

Written by tools/generate_kinds.py.
"""

from __future__ import annotations

from .deleteoptions import DeleteOptions, Preconditions
from .discovery import (
    APIGroup,
    APIGroupList,
    APIResource,
    APIResourceList,
    APIVersions,
    GroupResource,
    GroupVersionForDiscovery,
    ServerAddressByClientCIDR,
)
from .labelselector import FieldSelectorRequirement, LabelSelector, LabelSelectorRequirement
from .listmeta import ListMeta, ShardInfo
from .objectmeta import Condition, ManagedFieldsEntry, ObjectMeta, OwnerReference
from .options import CreateOptions, GetOptions, ListOptions, PatchOptions, UpdateOptions
from .status import Status, StatusCause, StatusDetails
from .table import PartialObjectMetadata, Table, TableColumnDefinition, TableRow, TableRowCondition
from .watch import WatchEvent

__all__ = [
    "APIGroup",
    "APIGroupList",
    "APIResource",
    "APIResourceList",
    "APIVersions",
    "Condition",
    "CreateOptions",
    "DeleteOptions",
    "FieldSelectorRequirement",
    "GetOptions",
    "GroupResource",
    "GroupVersionForDiscovery",
    "LabelSelector",
    "LabelSelectorRequirement",
    "ListMeta",
    "ListOptions",
    "ManagedFieldsEntry",
    "ObjectMeta",
    "OwnerReference",
    "PartialObjectMetadata",
    "PatchOptions",
    "Preconditions",
    "ServerAddressByClientCIDR",
    "ShardInfo",
    "Status",
    "StatusCause",
    "StatusDetails",
    "Table",
    "TableColumnDefinition",
    "TableRow",
    "TableRowCondition",
    "UpdateOptions",
    "WatchEvent",
]
