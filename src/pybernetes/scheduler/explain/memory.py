"""Remembers attempts: each node's verdict and each score, in small arrays, as many as the limits allow.

Written in the scheduling cycle of every pod, so it must cost microseconds: one byte a node for who refused it, one for
each score. Reasons in words are kept where the cycle has them anyway, which is when the pod fits nowhere.

To copy the scores of five thousand nodes takes longer than to choose one of them. So in a large cluster only so many
attempts a second are kept whole (`WHOLE_A_SECOND`); of a pod in a burst, the scores of the best nodes are.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..framework.podinfo import PodInfo
from ..framework.recorder import Attempt
from ..framework.status import Status

MOST_ATTEMPTS: Final = 4096
MOST_BYTES: Final = 16 << 20
MOST_FOR_A_POD: Final = 4
"""Older attempts for the same pod are not interesting: it fails for the same reasons."""
SMALL: Final = 250
"""Nodes up to which every attempt is kept whole."""
WHOLE_A_SECOND: Final = 20
BEST: Final = 10
"""Of so many nodes the scores are kept at least."""
_OVERHEAD = 1500
"""Bytes of an attempt beside its arrays, roughly."""

NOT_REFUSED: Final = -1


@dataclass(slots=True, eq=False)
class Remembered:
    """The record of an attempt."""

    uid: str
    number: int
    started: float
    seconds: float
    result: str
    profile: str
    node_name: str
    nominated_node_name: str
    message: str
    num_nodes: int
    names: list[str]
    """By row; shared by all attempts between two changes of nodes."""
    refusals: list[Status] = field(default_factory=list)
    refused_by: npt.NDArray[np.int16] | None = None
    """By row: an index into `refusals`, or NOT_REFUSED. None = no row was rejected."""
    feasible: npt.NDArray[np.int32] | None = None
    """The rows that were scored."""
    score_plugins: list[str] = field(default_factory=list)
    weights: list[int] = field(default_factory=list)
    scores: npt.NDArray[np.int8] | None = None
    """[plugin, position in `feasible`], 0..100."""
    total: npt.NDArray[np.int32] | None = None
    num_feasible: int = 0
    """How many rows were scored; more than are kept if only the best were."""
    bound: str | None = None
    """"" when the binding went well, else why not; None while it is not known."""

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        arrays = (self.refused_by, self.feasible, self.scores, self.total)
        return _OVERHEAD + sum(each.nbytes for each in arrays if each is not None)


class Memory:
    """The attempts remembered (an `AttemptRecorder`); the oldest go when a limit is reached."""

    def __init__(self, most_attempts: int = MOST_ATTEMPTS, most_bytes: int = MOST_BYTES) -> None:
        self._most_attempts = most_attempts
        self._most_bytes = most_bytes
        self._ring: OrderedDict[int, Remembered] = OrderedDict()
        self._by_pod: dict[str, list[int]] = {}
        self._next = 0
        self.bytes = 0
        self._second = 0.0
        self._in_second = 0

    def __len__(self) -> int:
        return len(self._ring)

    def of(self, uid: str) -> list[Remembered]:
        """The attempts for a pod that are remembered, the newest last."""
        return [self._ring[number] for number in self._by_pod.get(uid, ())]

    def record(self, attempt: Attempt) -> None:
        """Keep an attempt."""
        kept = _remember(attempt, self._whole(attempt))
        number = self._next = self._next + 1
        self._ring[number] = kept
        numbers = self._by_pod.setdefault(kept.uid, [])
        numbers.append(number)
        self.bytes += kept.size
        if len(numbers) > MOST_FOR_A_POD:
            self._drop(numbers[0])
        while len(self._ring) > self._most_attempts or (self.bytes > self._most_bytes and len(self._ring) > 1):
            self._drop(next(iter(self._ring)))

    def _whole(self, attempt: Attempt) -> bool:
        if attempt.size <= SMALL or attempt.total is None:
            return True
        if attempt.started - self._second >= 1.0:
            self._second, self._in_second = attempt.started, 0
        self._in_second += 1
        return self._in_second <= WHOLE_A_SECOND

    def bound(self, pod: PodInfo, node_name: str, status: Status | None) -> None:
        """The binding has ended."""
        for kept in self.of(pod.uid)[-1:]:
            kept.bound = "" if status is None else status.message

    def forget(self, uid: str) -> None:
        """The pod is gone."""
        for number in list(self._by_pod.get(uid, ())):
            self._drop(number)

    def _drop(self, number: int) -> None:
        kept = self._ring.pop(number)
        self.bytes -= kept.size
        numbers = self._by_pod[kept.uid]
        numbers.remove(number)
        if not numbers:
            del self._by_pod[kept.uid]


def _remember(attempt: Attempt, whole: bool) -> Remembered:
    status, diagnosis = attempt.status, attempt.diagnosis
    message = diagnosis.message() if diagnosis is not None else status.message if status is not None else ""
    kept = Remembered(
        uid=attempt.pod.uid,
        number=attempt.number,
        started=attempt.started,
        seconds=attempt.seconds,
        result=attempt.result,
        profile=attempt.framework.profile_name,
        node_name=attempt.node_name,
        nominated_node_name=attempt.nominated_node_name,
        message=message,
        num_nodes=attempt.framework.snapshot.num_nodes,
        names=attempt.names,
    )
    if diagnosis is not None:
        refused_by = np.full(attempt.size, NOT_REFUSED, dtype=np.int16)
        for index, (said, rows) in enumerate(diagnosis.groups):
            kept.refusals.append(said)
            refused_by[rows] = index
        kept.refused_by = refused_by
    elif whole and attempt.masks and (attempt.feasible is None or len(attempt.feasible) < kept.num_nodes):
        _remember_masks(kept, attempt)
    if attempt.feasible is not None and attempt.total is not None:
        positions = slice(None) if whole else _best_and_chosen(attempt)
        found = attempt.scores_at(positions)
        kept.num_feasible = len(attempt.feasible)
        kept.feasible = attempt.feasible[positions].astype(np.int32)
        kept.score_plugins = list(found)
        kept.weights = [attempt.weights.get(name, 1) for name in found]
        kept.scores = np.empty((len(found), len(kept.feasible)), dtype=np.int8)
        for index, each in enumerate(found.values()):
            kept.scores[index] = each
        kept.total = attempt.total[positions].astype(np.int32)
    return kept


def best(total: npt.NDArray[np.int64] | npt.NDArray[np.int32], number: int) -> npt.NDArray[np.intp]:
    """The positions of the highest totals, the highest first."""
    if len(total) <= number:
        return np.argsort(-total, kind="stable")
    ties = np.flatnonzero(total == total.max())
    if len(ties) >= number:  # as a rule, among thousands of nodes; a sixth of the time
        return ties[:number]
    found = np.argpartition(total, len(total) - number)[-number:]
    return found[np.argsort(-total[found], kind="stable")]


def _best_and_chosen(attempt: Attempt) -> npt.NDArray[np.intp]:
    assert attempt.total is not None
    assert attempt.feasible is not None
    found = best(attempt.total, BEST)
    row = attempt.framework.snapshot.row_of.get(attempt.node_name)
    if row is None:
        return found
    position = int(np.searchsorted(attempt.feasible, row))  # rows are in order
    return found if position in found else np.append(found, position)


def _remember_masks(kept: Remembered, attempt: Attempt) -> None:
    """The plugin that rejected each row; formatting messages would cost the cycle too much."""
    from ..framework.status import Code

    assert attempt.alive is not None
    refused_by: Any = None
    for plugin, mask in attempt.masks.items():
        refused = attempt.alive[: attempt.size] & ~mask[: attempt.size]
        if refused_by is not None:
            refused &= refused_by == NOT_REFUSED
        if not refused.any():
            continue
        if refused_by is None:
            refused_by = np.full(attempt.size, NOT_REFUSED, dtype=np.int16)
        refused_by[refused] = len(kept.refusals)
        kept.refusals.append(Status(Code.UNSCHEDULABLE, plugin=plugin))
    kept.refused_by = refused_by
