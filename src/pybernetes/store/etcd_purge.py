"""Removes all objects of a cluster from etcd: everything below `/registry/`, as the API server writes its keys."""

from __future__ import annotations

from collections.abc import Sequence

from pybernetes.store import etcd_messages as pb
from pybernetes.store.base import StoreUnavailable
from pybernetes.store.etcd_client import EtcdClient, Refused

PREFIX = b"/registry/"
AFTER = b"/registry0"
"""The first key behind all that begin with the prefix."""
PATIENCE = 5.0
"""Seconds that etcd has to answer."""


async def purge(endpoints: Sequence[str]) -> int:
    """Deletes the keys and returns how many there were. Raises StoreUnavailable."""
    try:
        client = EtcdClient(endpoints, patience=PATIENCE)
        await client.open()
    except ValueError as error:
        raise StoreUnavailable(str(error)) from error
    try:
        answer = await client.read("DeleteRange", pb.DeleteRangeRequest(key=PREFIX, range_end=AFTER))
    except Refused as refused:
        raise StoreUnavailable(f"etcd refuses to delete: {refused.details}") from refused
    finally:
        await client.close()
    return int(answer.deleted)
