"""Does the steps of a plan: pods with their claims, and events about both."""

from __future__ import annotations

from collections.abc import Callable

from pybernetes.api import errors
from pybernetes.api.apps.v1 import StatefulSet
from pybernetes.api.core.v1.persistentvolumeclaim import PersistentVolumeClaim
from pybernetes.api.core.v1.pod import Pod
from pybernetes.client.client import Client
from pybernetes.client.events import NORMAL, WARNING, EventRecorder
from pybernetes.client.informer import Informer
from pybernetes.client.keys import copy, uid_of

from ..common.meta import is_deleting, meta, name_of
from .identity import claims_for, identity_matches, ordinal_of, set_identity, set_storage, storage_matches
from .retention import has_conflicting_controller, is_up_to_date, update_owners

_REFUSALS = (errors.APIError, OSError, TimeoutError)


class ClaimNotReady(errors.APIError):
    """A claim cannot be used: it could not be made, or is going away."""


class StatefulPodControl:
    """Pods and claims on behalf of one set. Calls `wrote` for each write."""

    def __init__(
        self,
        client: Client,
        recorder: EventRecorder,
        claims: Informer[PersistentVolumeClaim],
        statefulset: StatefulSet,
        wrote: Callable[[Pod | PersistentVolumeClaim], None],
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._claims = claims
        self._set = statefulset
        self._wrote = wrote

    def claim(self, name: str) -> PersistentVolumeClaim | None:
        """A claim of the set's namespace."""
        return self._claims.named(name, meta(self._set).namespace or "")

    async def create(self, pod: Pod) -> None:
        """Make a pod, its claims first."""
        try:
            await self._create_claims(pod)
            made = await self._client.create(pod)
        except errors.AlreadyExists:
            raise
        except _REFUSALS as error:
            self._tell("Create", pod, error)
            raise
        self._wrote(made)
        await self.fix_claims(made)
        self._tell("Create", pod, None)

    async def delete(self, pod: Pod) -> None:
        """Delete this very pod; `errors.NotFound` if it has gone, `errors.Conflict` if it has been replaced."""
        try:
            await self._client.delete(Pod, name_of(pod), meta(pod).namespace or "", uid=uid_of(pod))
        except (errors.NotFound, errors.Conflict):
            raise
        except _REFUSALS as error:
            self._tell("Delete", pod, error)
            raise
        self._tell("Delete", pod, None)

    async def update(self, pod: Pod) -> None:
        """Give the pod back the labels, volumes and claims of its ordinal."""
        changed = copy(pod)
        identity, storage = identity_matches(self._set, pod), storage_matches(self._set, pod)
        try:
            if not identity:
                set_identity(self._set, changed)
            if not storage:
                set_storage(self._set, changed)
                await self._create_claims(changed)
            await self.fix_claims(changed)
            if identity and storage:
                return
            self._wrote(await self._client.update(changed))
        except errors.Conflict:
            raise  # changed meanwhile: the next round sees
        except _REFUSALS as error:
            self._tell("Update", pod, error)
            raise
        self._tell("Update", pod, None)

    async def ensure_claims(self, pod: Pod) -> None:
        """Make claims that are missing: a pending pod may be waiting for one that was deleted."""
        await self._create_claims(pod)
        await self.fix_claims(pod)

    async def fix_claims(self, pod: Pod) -> None:
        """Make the claims belong to whom the retention policy says."""
        for wanted in claims_for(self._set, ordinal_of(pod)).values():
            claim = self.claim(name_of(wanted))
            if claim is None:
                continue  # too new for the cache: the next round
            if has_conflicting_controller(claim, self._set, pod):
                text = (
                    f"PersistentVolumeClaim {name_of(claim)} has a conflicting OwnerReference that acts as a manging "
                    "controller, the retention policy is ignored for this claim"
                )  # upstream's spelling
                self._recorder.event(self._set, WARNING, "ConflictingController", text)
            if not is_up_to_date(claim, self._set, pod):
                claim = copy(claim)
                update_owners(claim, self._set, pod)
                self._wrote(await self._client.update(claim))

    async def _create_claims(self, pod: Pod) -> None:
        problems: list[str] = []
        for wanted in claims_for(self._set, ordinal_of(pod)).values():
            name = name_of(wanted)
            existing = self.claim(name)
            if existing is not None:
                if is_deleting(existing):
                    problems.append(f"pvc {name} is being deleted")
                continue
            try:
                self._wrote(await self._client.create(wanted))
            except errors.AlreadyExists as error:
                problems.append(f"failed to create PVC {name}: {error}")
            except _REFUSALS as error:
                subject = f"Create Claim {name} for Pod {name_of(pod)} in StatefulSet {name_of(self._set)}"
                self._recorder.event(self._set, WARNING, "FailedCreate", f"{subject} failed error: {error}")
                problems.append(f"failed to create PVC {name}: {error}")
            else:
                text = f"Create Claim {name} Pod {name_of(pod)} in StatefulSet {name_of(self._set)} success"
                self._recorder.event(self._set, NORMAL, "SuccessfulCreate", text)
        if problems:
            raise ClaimNotReady(problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    def _tell(self, verb: str, pod: Pod, error: BaseException | None) -> None:
        subject = f"{verb} Pod {name_of(pod)} in StatefulSet {name_of(self._set)}"
        if error is None:
            self._recorder.event(self._set, NORMAL, f"Successful{verb}", f"{subject} successful")
        else:
            self._recorder.event(self._set, WARNING, f"Failed{verb}", f"{subject} failed error: {error}")
