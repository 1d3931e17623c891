"""The interface of a plugin: a class with a name that implements some of these extension points.

Plugins work on all nodes at once. A node is a *row* of the snapshot, and what plugins read of nodes are columns: numpy
arrays with one element a row. `rows` in `filter` and `score` is an index into columns (a slice or an array of row
numbers): `column[rows]`, or `snapshot.names[row]`. The answer has one element for each of them.

`scope` says what an answer depends on beside the pod, and so how long it is good for:

- `Scope.NODE`: for each row, on its node object only (labels, taints, images). Kept until the node changes.
- `Scope.ROW`: for each row, on its node and the pods on it. Kept until a pod comes or goes there.
- `Scope.CLUSTER` (the default): on anything. Asked for every pod anew.

With NODE and ROW the plugin must implement `sign`: the answers, also those of `pre_filter` and `pre_score` and what
these wrote to the state, are shared by all pods with the same signature. So they must be functions of what is signed.

An exception that leaves a plugin fails that pod only: it becomes a Status of code ERROR, with an event.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from pybernetes.client.keys import Key

from .events import ClusterEvent, EventWithHint
from .podinfo import PodInfo
from .state import CycleState
from .status import Code, Status

if TYPE_CHECKING:
    from .diagnosis import Diagnosis
    from .handle import Handle
    from .queued import QueuedPodInfo

Mask = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.int64]
RowArray = npt.NDArray[np.intp]
Rows = RowArray | slice
"""Which rows: both forms index a column; `count_rows` and `row_numbers` of the snapshot tell how many and which."""
Refusals = Iterable[tuple[Status, RowArray]]

MAX_SCORE = 100
MIN_SCORE = 0


class Scope(IntEnum):
    """The inputs of a plugin's result; see the module's docstring."""

    NODE = 0
    ROW = 1
    CLUSTER = 2


class Normalize(Enum):
    """How a plugin's scores are normalized before they are weighed."""

    NONE = "none"
    DEFAULT = "default"
    """score * 100 // highest"""
    REVERSED = "reversed"
    """100 - score * 100 // highest; 100 for all when the highest is 0"""
    CUSTOM = "custom"
    """the plugin's `normalize_scores`"""


class Plugin(ABC):
    """The base of all: `name` is what configurations call it."""

    name: ClassVar[str]
    Args: ClassVar[type[Any] | None] = None
    """The class (an `api.base.Struct` with upstream's field names and defaults) of its `pluginConfig` args, if any."""
    scope: ClassVar[Scope] = Scope.CLUSTER

    def __init__(self, args: Any, handle: Handle) -> None:
        """`args` is an object of `Args` (defaults filled in and validated), None without."""
        self.args = args
        self.handle = handle

    def sign(self, pod: PodInfo) -> Hashable:
        """The fields of the pod that matter to this plugin, as a hashable value. Needed with Scope.NODE and ROW."""
        raise NotImplementedError(f"{self.name}: a plugin whose scope is not CLUSTER must sign pods")

    def events_to_register(self) -> Sequence[EventWithHint]:
        """The events that may make a pod schedulable which this plugin rejected; by default any event."""
        from .events import WILDCARD_EVENT

        return (EventWithHint(WILDCARD_EVENT),)


class PreEnqueuePlugin(Plugin):
    """May keep a pod out of the queue."""

    @abstractmethod
    def pre_enqueue(self, pod: PodInfo) -> Status | None:
        """None lets the pod in; must be quick."""

    def released(self, event: ClusterEvent, old: Any, new: Any) -> Iterable[Key] | None:
        """Pods that `pre_enqueue` refused and that it may let in after this event; None = it is to be asked of all.

        Worth overriding where many are kept out, each by something else: asking all of them costs every event.
        """
        return None


class QueueSortPlugin(Plugin):
    """Orders the queue; exactly one is enabled, the same in all profiles."""

    @abstractmethod
    def sort_key(self, queued: QueuedPodInfo) -> Any:
        """Pods with smaller keys come first. (Upstream has `Less`; a heap in Python wants a key.)"""


@dataclass(frozen=True, slots=True)
class PreFilterResult:
    """Which nodes are worth a look; None = all."""

    node_names: frozenset[str] | None = None


class PreFilterPlugin(Plugin):
    """Works out, once for a pod, what its filter needs."""

    @abstractmethod
    def pre_filter(self, state: CycleState, pod: PodInfo) -> PreFilterResult | Status | None:
        """None or a result to go on; `SKIP` when the filter has nothing to say; any other Status fails the pod."""

    def add_pod(self, state: CycleState, pod: PodInfo, added: PodInfo, row: int) -> Status | None:
        """Update the state as if `added` were on this row, too (the snapshot's arrays already are up to date)."""
        return None

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: PodInfo, row: int) -> Status | None:
        """Update the state as if `removed` were not on this row (the snapshot's arrays already are up to date)."""
        return None


class FilterPlugin(Plugin):
    """Says which nodes a pod may go to."""

    @abstractmethod
    def filter(self, state: CycleState, pod: PodInfo, rows: Rows) -> Mask:
        """True where the pod may go, one for each of the rows. Reasons are asked for later, if at all."""

    def filter_row(self, state: CycleState, pod: PodInfo, row: int) -> bool:
        """The same for one row. Worth overriding where plain numbers are quicker than arrays of one element."""
        return bool(self.filter(state, pod, np.array([row], dtype=np.intp))[0])

    def refusals(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Refusals:
        """Why these rows, all of which `filter` has refused, were: each exactly once, rows of one reason together.

        Called when the pod fits nowhere or an explanation is requested. By default asks `refusal` for every row.
        """
        groups: dict[Status, list[int]] = {}
        for row in rows.tolist():
            groups.setdefault(self.refusal(state, pod, row), []).append(row)
        return [(status, np.array(found, dtype=np.intp)) for status, found in groups.items()]

    def refusal(self, state: CycleState, pod: PodInfo, row: int) -> Status:
        """Why one row was refused. Implement this or `refusals`."""
        return Status(Code.UNSCHEDULABLE, f"node(s) were refused by {self.name}")


@dataclass(slots=True)
class PostFilterResult:
    """A node that preemption has made room on. None leaves the nomination as it is, "" clears it."""

    nominated_node_name: str | None = None


class PostFilterPlugin(Plugin):
    """Called when a pod fits nowhere: may make room."""

    @abstractmethod
    async def post_filter(
        self, state: CycleState, pod: PodInfo, diagnosis: Diagnosis
    ) -> tuple[PostFilterResult | None, Status | None]:
        """Status None = room will be made; UNSCHEDULABLE = could not help (its message ends up in the event).

        The snapshot does not change while this runs, even where it awaits.
        """


class PreScorePlugin(Plugin):
    """Works out, once for a pod, what its score needs."""

    @abstractmethod
    def pre_score(self, state: CycleState, pod: PodInfo, rows: RowArray) -> Status | None:
        """`rows` are those that passed all filters. `SKIP` when the score would be the same everywhere.

        With Scope.NODE or ROW do not look at `rows`: the answer is kept.
        """


class ScorePlugin(Plugin):
    """Says how good nodes are for a pod."""

    normalize: ClassVar[Normalize] = Normalize.NONE

    @abstractmethod
    def score(self, state: CycleState, pod: PodInfo, rows: Rows) -> Scores:
        """int64, one for each of the rows; 0..100 after normalisation."""

    def score_row(self, state: CycleState, pod: PodInfo, row: int) -> int:
        """The same for one row. Worth overriding where plain numbers are quicker than arrays of one element."""
        return int(self.score(state, pod, np.array([row], dtype=np.intp))[0])

    def normalize_scores(self, state: CycleState, pod: PodInfo, scores: Scores, rows: RowArray) -> Scores:
        """With Normalize.CUSTOM: the scores of all feasible rows, brought to 0..100. `scores` may be changed."""
        return scores


class ReservePlugin(Plugin):
    """Keeps books of its own about what assumed pods use."""

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """The pod is going there: note it. A Status makes the pod fail, and `unreserve` is called for all."""
        return None

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """It is not going there after all. May come without a `reserve`, or twice."""


class PermitPlugin(Plugin):
    """May delay a pod that has its node."""

    @abstractmethod
    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status | None, float]:
        """None to go on, a `WAIT` status with seconds to wait for `handle.waiting_pod(uid).allow(name)`, or refuse."""


class PreBindPlugin(Plugin):
    """Does what must be done before a pod is bound."""

    def pre_bind_pre_flight(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """`SKIP` when `pre_bind` has nothing to do; quick, changes nothing."""
        return None

    @abstractmethod
    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """None when done. Runs beside other pods' cycles: do not read the snapshot here."""


class BindPlugin(Plugin):
    """Tells the API server which node a pod goes to."""

    @abstractmethod
    async def bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status | None:
        """None when bound, `SKIP` to leave it to the next one, else the pod fails. API errors may be raised."""


class PostBindPlugin(Plugin):
    """Runs after a pod was bound."""

    @abstractmethod
    def post_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """For information and cleaning up."""


EXTENSION_POINTS: dict[str, type[Plugin]] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}
"""The names of a profile's `plugins` and the class that a plugin of each must be."""


def default_normalize(scores: Scores, reverse: bool = False) -> Scores:
    """Scores scaled to 0..100 by their highest, in upstream's integer arithmetic (none is negative)."""
    highest = int(scores.max()) if len(scores) else 0
    if highest == 0:
        return np.full_like(scores, MAX_SCORE) if reverse else scores
    scaled = scores * MAX_SCORE // highest
    return MAX_SCORE - scaled if reverse else scaled
