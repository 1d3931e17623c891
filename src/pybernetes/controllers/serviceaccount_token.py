"""Fills Secrets of type `kubernetes.io/service-account-token`, and deletes them with their ServiceAccount.

Woken by: such Secrets, and ServiceAccounts. Writes: token, CA and namespace into the Secrets; takes deleted ones out of
their account's list. Runs only with a key to sign with.
"""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any, Final, NamedTuple

from pybernetes.api import errors
from pybernetes.api.core.v1 import Secret, ServiceAccount
from pybernetes.client.keys import Key, copy, key_of, uid_of
from pybernetes.client.retry import retry_on_conflict
from pybernetes.client.workqueue import WorkQueue
from pybernetes.jws import load_signing_key, sign_token

from .base import Controller
from .common.meta import annotations_of, meta, name_of

SECRET_TYPE: Final = "kubernetes.io/service-account-token"
ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
ACCOUNT_UID: Final = "kubernetes.io/service-account.uid"


class _Account(NamedTuple):
    """A ServiceAccount: another one of the same name has another uid."""

    key: Key
    uid: str


class _Token(NamedTuple):
    """A Secret and the account that it says it is for."""

    key: Key
    uid: str
    account: str
    account_uid: str


class ServiceAccountTokenController(Controller[Any]):
    """Fills token Secrets."""

    name = "serviceaccount-token-controller"

    def setup(self) -> None:
        """Read the key and the CA."""
        options = self.options
        path = options.service_account_private_key_file
        self.key = load_signing_key(Path(path).read_bytes()) if path else None
        ca = options.root_ca_file
        self.authority = Path(ca).read_bytes() if ca else self.client.transport.config.ca_data
        self.account_queue: WorkQueue[_Account] = self.new_queue("serviceaccount_tokens_service")
        self.token_queue: WorkQueue[_Token] = self.new_queue("serviceaccount_tokens_secret")
        if self.key is None:
            return
        self.accounts = self.informer(ServiceAccount)
        self.accounts.add_handler(None, self._account_updated, self._account_gone)
        self.secrets = self.informer(Secret, field_selector=f"type={SECRET_TYPE}")
        self.secrets.add_handler(self._token_seen, lambda _, new: self._token_seen(new), self._token_seen)

    async def run(self) -> None:
        """Nothing to do without a key."""
        if self.key is None:
            return
        await self.wait_synced()
        workers = self.options.concurrent_serviceaccount_token_syncs
        async with asyncio.TaskGroup() as group:
            group.create_task(self.work(self.account_queue, self._sync_account, workers))
            group.create_task(self.work(self.token_queue, self._sync_token, workers))

    def _account_updated(self, old: ServiceAccount, new: ServiceAccount) -> None:
        if uid_of(old) != uid_of(new):
            self._account_gone(old)

    def _account_gone(self, account: ServiceAccount) -> None:
        self.account_queue.add(_Account(key_of(account), uid_of(account)))

    def _token_seen(self, secret: Secret) -> None:
        annotations = annotations_of(secret)
        account, uid = annotations.get(ACCOUNT_NAME, ""), annotations.get(ACCOUNT_UID, "")
        self.token_queue.add(_Token(key_of(secret), uid_of(secret), account, uid))

    async def _sync_account(self, account: _Account) -> None:
        """Delete the tokens of an account that is gone."""
        if self._cached(account.key, account.uid) is not None:
            return
        for secret in self.secrets.in_namespace(account.key.namespace):
            annotations = annotations_of(secret)
            if annotations.get(ACCOUNT_NAME) == account.key.name and annotations.get(ACCOUNT_UID) == account.uid:
                await self._delete(key_of(secret), uid_of(secret))

    async def _sync_token(self, token: _Token) -> None:
        """Fill a token, delete it if it has no account, or forget it if it is gone."""
        where = Key(token.key.namespace, token.account)
        secret = self.secrets.get(token.key)
        if secret is None or uid_of(secret) != token.uid:
            if self._cached(where, token.account_uid) is not None:
                await retry_on_conflict(lambda: self._remove_reference(where, token))
            return
        account = self._cached(where, token.account_uid) or await self._live(where, token.account_uid)
        if account is None:
            await self._delete(token.key, token.uid)
        elif needs(secret, self.authority):
            await self._fill(secret, account)

    async def _fill(self, cached: Secret, account: ServiceAccount) -> None:
        where = key_of(cached)
        try:
            live = await self.client.get(Secret, where.name, where.namespace)
            if meta(live).resource_version != meta(cached).resource_version:
                return  # it has changed, and will come by again
            assert self.key is not None
            missing = needs(live, self.authority)
            data = dict(live.data or {})
            if "ca.crt" in missing:
                data["ca.crt"] = base64.b64encode(self.authority).decode()
            if "namespace" in missing:
                data["namespace"] = base64.b64encode(where.namespace.encode()).decode()
            if "token" in missing:
                data["token"] = base64.b64encode(sign_token(legacy_claims(account, live), self.key).encode()).decode()
            live.data = data
            meta(live).annotations = {
                **annotations_of(live),
                ACCOUNT_NAME: name_of(account),
                ACCOUNT_UID: uid_of(account),
            }
            await self.client.update(live)
        except (errors.Conflict, errors.NotFound):
            return

    async def _remove_reference(self, where: Key, token: _Token) -> None:
        account = await self._live(where, token.account_uid)
        if account is None or all(each.name != token.key.name for each in account.secrets or ()):
            return
        changed = copy(account)
        changed.secrets = [each for each in account.secrets or () if each.name != token.key.name] or None
        try:
            await self.client.update(changed)
        except errors.NotFound:
            return

    async def _delete(self, key: Key, uid: str) -> None:
        try:
            await self.client.delete(Secret, key.name, key.namespace, uid=uid)
        except (errors.NotFound, errors.Conflict):
            return

    def _cached(self, key: Key, uid: str) -> ServiceAccount | None:
        found: ServiceAccount | None = self.accounts.get(key)
        return found if found is not None and (not uid or uid_of(found) == uid) else None

    async def _live(self, key: Key, uid: str) -> ServiceAccount | None:
        if not key.name:
            return None
        try:
            found = await self.client.get(ServiceAccount, key.name, key.namespace)
        except errors.NotFound:
            return None
        return found if not uid or uid_of(found) == uid else None


def needs(secret: Secret, authority: bytes) -> set[str]:
    """The fields a token Secret lacks: `ca.crt`, `namespace`, `token`."""
    data = secret.data or {}
    missing = {name for name in ("namespace", "token") if not data.get(name)}
    if authority and base64.b64decode(data.get("ca.crt") or "") != authority:
        missing.add("ca.crt")
    return missing


def legacy_claims(account: ServiceAccount, secret: Secret) -> dict[str, Any]:
    """The claims of a legacy token: it is valid as long as its Secret and account exist."""
    namespace = meta(account).namespace or ""
    prefix = "kubernetes.io/serviceaccount/"
    return {
        "iss": "kubernetes/serviceaccount",
        "sub": f"system:serviceaccount:{namespace}:{name_of(account)}",
        f"{prefix}namespace": namespace,
        f"{prefix}secret.name": name_of(secret),
        f"{prefix}service-account.name": name_of(account),
        f"{prefix}service-account.uid": uid_of(account),
    }
