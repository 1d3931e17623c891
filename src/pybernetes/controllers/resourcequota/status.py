"""The status of a quota after a count. Pure."""

from __future__ import annotations

from pybernetes.api.core.v1 import ResourceQuota, ResourceQuotaStatus
from pybernetes.api.core.v1.quota import ResourceQuotaSpec
from pybernetes.api.quota.lists import Resources, equal, formatted, mask, parsed


def counted(quota: ResourceQuota, usage: Resources) -> ResourceQuotaStatus | None:
    """The status that says what is used; None if it says so already.

    Names without an evaluator keep their value: another controller may have written it.
    """
    spec, status = quota.spec or ResourceQuotaSpec(), quota.status or ResourceQuotaStatus()
    hard, before = parsed(spec.hard), parsed(status.used)
    used = mask({**before, **usage}, hard)
    if status.hard is not None and equal(hard, parsed(status.hard)) and status.used is not None and equal(used, before):
        return None
    return ResourceQuotaStatus(hard=spec.hard, used=formatted(used))
