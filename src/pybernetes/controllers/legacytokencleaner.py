"""Removes unused token Secrets of ServiceAccounts that were made automatically, long ago.

Woken by: time, once a day. Writes: first the label `kubernetes.io/legacy-token-invalid-since`, which makes the token
useless; as much later again the Secret is deleted. Secrets that people made (their account does not list them) stay.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Iterable
from typing import Any, Final, Literal

from pybernetes.api import errors
from pybernetes.api.core.podsecrets import secret_names
from pybernetes.api.core.v1 import ConfigMap, Pod, Secret, ServiceAccount
from pybernetes.client.keys import uid_of

from .base import Controller
from .common.meta import annotations_of, created, is_deleting, labels_of, meta, name_of
from .serviceaccount_token import ACCOUNT_NAME, ACCOUNT_UID, SECRET_TYPE

LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
TRACKING: Final = "kube-apiserver-legacy-service-account-token-tracking"
INTERVAL: Final = 24 * 3600.0

Verdict = Literal["keep", "mark", "delete"]


class LegacyServiceAccountTokenCleanerController(Controller[Any]):
    """Cleans up after older versions."""

    name = "legacy-serviceaccount-token-cleaner-controller"

    def setup(self) -> None:
        """Caches of what may use a token."""
        self.secrets = self.informer(Secret, field_selector=f"type={SECRET_TYPE}")
        self.accounts = self.informer(ServiceAccount)
        self.pods = self.informer(Pod)

    async def run(self) -> None:
        """Once a day."""
        await self.wait_synced()
        while True:
            try:
                await self.evaluate()
            except (errors.APIError, OSError, TimeoutError) as error:
                self.log.warning("legacy tokens: %s", error)
            await self.clock.sleep(INTERVAL)

    async def evaluate(self) -> None:
        """Judge all tokens, once the API server has tracked their use for long enough."""
        now, period = self.clock.now(), self.options.legacy_service_account_token_clean_up_period
        tracked = await self._tracked_since()
        if tracked is None or now < tracked + period:
            return
        for secret in self.secrets.items():
            namespace = meta(secret).namespace or ""
            account = self.accounts.named(annotations_of(secret).get(ACCOUNT_NAME, ""), namespace)
            mounted = (name for pod in self.pods.in_namespace(namespace) for name in secret_names(pod))
            match judge(secret, account, mounted, now, period):
                case "mark":
                    patch = {"metadata": {"uid": uid_of(secret), "labels": {INVALID_SINCE: day(now)}}}
                    await self._try(self.client.patch(Secret, name_of(secret), patch, namespace))
                case "delete":
                    version = meta(secret).resource_version
                    await self._try(self.client.delete(Secret, name_of(secret), namespace, resource_version=version))

    async def _try(self, write: Any) -> None:
        try:
            await asyncio.ensure_future(write)
        except (errors.Conflict, errors.NotFound):
            return
        except errors.APIError as error:  # about this token; the others are not concerned
            self.log.warning("legacy tokens: %s", error)

    async def _tracked_since(self) -> float | None:
        """The end of the day on which the API server began to note which tokens are used."""
        try:
            found = await self.client.get(ConfigMap, TRACKING, "kube-system")
        except errors.NotFound:
            return None
        since = _parse_day((found.data or {}).get("since", ""))
        return None if since is None else since + 24 * 3600


def judge(secret: Secret, account: ServiceAccount | None, mounted: Iterable[str], now: float, period: float) -> Verdict:
    """Decide about a token; days are compared as they are written."""
    before = now - period
    if created(secret) >= before or is_deleting(secret):
        return "keep"
    labels = labels_of(secret)
    used = labels.get(LAST_USED)
    if used is not None and (_parse_day(used) is None or used >= day(before)):
        return "keep"
    uid = annotations_of(secret).get(ACCOUNT_UID)
    if account is None or (uid and uid_of(account) != uid):
        return "keep"
    if all(each.name != name_of(secret) for each in account.secrets or ()) or name_of(secret) in mounted:
        return "keep"
    invalid = labels.get(INVALID_SINCE, "")
    if _parse_day(invalid) is None:
        return "mark"
    return "keep" if invalid >= day(before) else "delete"


def day(seconds: float) -> str:
    """A moment's day."""
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d")


def _parse_day(text: str) -> float | None:
    try:
        return datetime.datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=datetime.UTC).timestamp()
    except ValueError:
        return None
