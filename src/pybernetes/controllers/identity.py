"""Each controller as a service account of its own, with the rights of its role and no more.

With --use-service-account-credentials the manager's own identity only reads, asks for tokens and elects a leader. The
accounts are in kube-system and called as upstream calls them, which is how its roles are bound to them. They are made
and their tokens asked for when a controller first writes. Their requests have connections of their own: on one with the
manager's certificate the certificate would win.
"""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from collections.abc import Sequence
from typing import Final

import msgspec

from pybernetes.api import errors
from pybernetes.api.authentication.v1 import TokenRequest, TokenRequestSpec
from pybernetes.api.core.v1 import ServiceAccount
from pybernetes.api.meta.v1 import ObjectMeta
from pybernetes.client.client import Client
from pybernetes.client.exec_credentials import ExecCredential
from pybernetes.client.http import REQUEST_TIMEOUT, Headers, Response, Stream
from pybernetes.client.transport import Transport

log = logging.getLogger(__name__)

NAMESPACE = "kube-system"
LIFETIME = 3600  # seconds that a token is asked for
RENEW = 0.8  # of its life; upstream renews with a fifth left

ACCOUNTS: Final[dict[str, str]] = {
    "bootstrap-signer-controller": "bootstrap-signer",
    "certificatesigningrequest-approving-controller": "certificate-controller",
    "certificatesigningrequest-cleaner-controller": "certificate-controller",
    "certificatesigningrequest-signing-controller": "certificate-controller",
    "daemonset-controller": "daemon-set-controller",
    "endpoints-controller": "endpoint-controller",
    "endpointslice-mirroring-controller": "endpointslicemirroring-controller",
    "garbage-collector-controller": "generic-garbage-collector",
    "horizontal-pod-autoscaler-controller": "horizontal-pod-autoscaler",
    "legacy-serviceaccount-token-cleaner-controller": "legacy-service-account-token-cleaner",
    "node-ipam-controller": "node-controller",
    "node-lifecycle-controller": "node-controller",
    "persistentvolume-attach-detach-controller": "attachdetach-controller",
    "persistentvolume-binder-controller": "persistent-volume-binder",
    "persistentvolume-expander-controller": "expand-controller",
    "persistentvolume-protection-controller": "pv-protection-controller",
    "persistentvolumeclaim-protection-controller": "pvc-protection-controller",
    "pod-garbage-collector-controller": "pod-garbage-collector",
    "replicationcontroller-controller": "replication-controller",
    "resourceclaim-controller": "resource-claim-controller",
    "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
    "service-cidr-controller": "service-cidrs-controller",
    "service-lb-controller": "service-controller",
    "serviceaccount-controller": "service-account-controller",
    "serviceaccount-token-controller": "",
    "taint-eviction-controller": "node-controller",
    "token-cleaner-controller": "token-cleaner",
}
"""By the names of controllers; the others are called alike, and "" is the manager itself."""


class Identities:
    """Clients for controllers."""

    def __init__(self, root: Client) -> None:
        self._root = root
        config = dataclasses.replace(
            root.transport.config,
            client_certificate_data=b"",
            client_key_data=b"",
            token="",
            token_file="",
            username="",
            password="",
            exec_plugin=None,
        )
        self._shared = Transport(config, clock=root.transport.clock)
        self._transports: dict[str, AccountTransport] = {}

    def client(self, controller: str) -> Client:
        """The client of a controller."""
        account = ACCOUNTS.get(controller, controller)
        if not account:
            return self._root.for_component(controller)
        transport = self._transports.get(account)
        if transport is None:
            transport = self._transports[account] = AccountTransport(self._shared, self._root, account)
        return Client(transport=transport, program=self._root.program, component=controller)

    async def close(self) -> None:
        """Close the connections of all these clients."""
        await self._shared.close()


class AccountTransport(Transport):
    """Requests as one service account. A token that the server does not know any more is asked for anew."""

    def __init__(self, shared: Transport, root: Client, account: str) -> None:
        self.config = shared.config
        self.clock = shared.clock
        self.http = shared.http
        self._bucket = root.transport._bucket
        self._root = root.for_component(account)
        self._account = account
        self._exec = None
        self._token = ""
        self._token_until = 0.0
        self._renewing = asyncio.Lock()
        """Held while a token is asked for: requests that come meanwhile wait for the same one."""

    async def request(
        self,
        method: str,
        target: str,
        *,
        body: bytes = b"",
        headers: Headers | None = None,
        within: float | None = REQUEST_TIMEOUT,
    ) -> Response:
        """As every transport; tried twice if the token is refused."""
        token = self._token
        try:
            return await super().request(method, target, body=body, headers=headers, within=within)
        except errors.Unauthorized:
            self._discard(token)
            return await super().request(method, target, body=body, headers=headers, within=within)

    async def stream(self, method: str, target: str, *, headers: Headers | None = None) -> Stream:
        """As every transport; tried twice if the token is refused."""
        token = self._token
        try:
            return await super().stream(method, target, headers=headers)
        except errors.Unauthorized:
            self._discard(token)
            return await super().stream(method, target, headers=headers)

    def _discard(self, token: str) -> None:
        """Ask for another token than this one, unless that has been done meanwhile."""
        if self._token == token:
            self._token_until = 0.0

    async def _headers(
        self, headers: Headers | None, body: bytes, credential: ExecCredential | None = None
    ) -> dict[str, str | Sequence[str]]:
        result = await super()._headers(headers, body, credential)
        if self.clock.monotonic() >= self._token_until:
            async with self._renewing:
                if self.clock.monotonic() >= self._token_until:
                    await self._renew()
        result["Authorization"] = f"Bearer {self._token}"
        return result

    async def _renew(self) -> None:
        try:
            self._token = await self._request_token()
        except errors.NotFound:
            meta = ObjectMeta(name=self._account, namespace=NAMESPACE)
            try:
                await self._root.create(ServiceAccount(metadata=meta))
            except errors.AlreadyExists:
                pass  # another controller has the same account
            self._token = await self._request_token()
        self._token_until = self.clock.monotonic() + RENEW * LIFETIME

    async def _request_token(self) -> str:
        target = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{self._account}/token"
        asked = TokenRequest(
            kind="TokenRequest",
            api_version="authentication.k8s.io/v1",
            spec=TokenRequestSpec(expiration_seconds=LIFETIME),
        )
        answer = await self._root.transport.request("POST", target, body=msgspec.json.encode(asked))
        token: str = msgspec.json.decode(answer.body)["status"]["token"]
        return token
