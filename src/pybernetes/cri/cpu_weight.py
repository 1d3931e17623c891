"""CPU shares of cgroup v1 and CPU weights of cgroup v2.

A curve through three points: 2 shares are weight 1, 1024 shares (one CPU) are weight 100 (the kernel's default), 262144
shares are weight 10000. It is the one that runc, crun and the kubelet of v1.35 and later use; a straight line gave
weight 39 to one CPU, less than what the node's other cgroups have by default.
"""

from __future__ import annotations

import math
from typing import Final

MIN_SHARES: Final = 2
MAX_SHARES: Final = 262144
MAX_WEIGHT: Final = 10000


def shares_to_weight(shares: int) -> int:
    """The weight (1 to 10000) of a number of shares."""
    if shares <= MIN_SHARES:
        return 1
    if shares >= MAX_SHARES:
        return MAX_WEIGHT
    log = math.log2(shares)
    return math.ceil(10 ** ((log * log + 125 * log) / 612 - 7 / 34))


def weight_to_shares(weight: int) -> int:
    """The most shares that have a weight, so that `shares_to_weight` gives the weight again."""
    if weight <= 1:
        return MIN_SHARES
    if weight >= MAX_WEIGHT:
        return MAX_SHARES
    log = (math.sqrt(125**2 + 4 * 612 * (math.log10(weight) + 7 / 34)) - 125) / 2
    return math.floor(2**log + 1e-6)
