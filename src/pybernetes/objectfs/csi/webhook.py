"""The webhook of sidecar mode: pods of labelled namespaces that claim a volume of ours get its client as a sidecar.

Asked by the API server for each pod that is created there. Writes: the Secret with the volume's credentials in the
pod's namespace, owned by the claim; its own certificate, in a Secret of its namespace and in the configuration of the
webhook. A pod that cannot have its volume is refused with the reason, and its controller tries again.
"""

from __future__ import annotations

import asyncio
import base64
import datetime
import json
import logging
import tempfile
import uuid
from pathlib import Path
from typing import Any

import msgspec

from pybernetes import pki
from pybernetes.api import errors
from pybernetes.api.core.v1 import Namespace, PersistentVolume, PersistentVolumeClaim, Secret
from pybernetes.api.storage.v1 import StorageClass
from pybernetes.client.client import Client
from pybernetes.client.codec import decode
from pybernetes.csi.errors import CSIError
from pybernetes.net.http import HTTPServer
from pybernetes.net.messages import Request, Response
from pybernetes.net.tls import ServingTLS
from pybernetes.objectfs.csi import injection, manifests
from pybernetes.objectfs.csi.request import NAME, Volume, environment, safe_name, volume

log = logging.getLogger(__name__)
MAX_BODY = 8 << 20
WARNING = "objectfs: a privileged sidecar mounts the volume; a new version of it needs a new pod"
KEEP_SECONDS = 60.0
RENEW = datetime.timedelta(days=30)


class Refused(Exception):
    """A pod that cannot have its volumes, and why."""


class Injector:
    """From an AdmissionReview to its answer."""

    def __init__(self, client: Client, how: injection.Client) -> None:
        self._client, self._how = client, how

    async def review(self, review: dict[str, Any]) -> dict[str, Any]:
        """The AdmissionReview with the answer."""
        request = review.get("request") or {}
        answer: dict[str, Any] = {"uid": request.get("uid", ""), "allowed": True}
        try:
            changes = await self._changes(request)
        except (Refused, CSIError) as error:
            message = error.message if isinstance(error, CSIError) else str(error)
            answer |= {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": message}}
        else:
            if changes:
                patch = base64.b64encode(json.dumps(changes).encode()).decode()
                answer |= {"patchType": "JSONPatch", "patch": patch, "warnings": [WARNING]}
        return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}

    async def _changes(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        pod, namespace = request.get("object") or {}, request.get("namespace", "")
        spec = pod.get("spec") or {}
        if not await self._is_labelled(namespace):
            return []
        claimed: dict[str, injection.Claimed] = {}
        for each in spec.get("volumes") or []:
            if "ephemeral" in each:
                await self._check_ephemeral(each)
            elif source := each.get("persistentVolumeClaim"):
                ours = await self._claimed(namespace, source, dry_run=bool(request.get("dryRun")))
                if ours is not None:
                    claimed[each["name"]] = ours
        if not claimed:
            return []
        log.info("pod %s in %s: inject the client of %s", _name(pod), namespace, ", ".join(sorted(claimed)))
        return injection.patch(pod, claimed, self._how, uuid.uuid4().hex[:12])

    async def _is_labelled(self, namespace: str) -> bool:
        """Whether a namespace is to have clients, and credentials: all of the cluster can send requests here."""
        try:
            found = await self._client.get(Namespace, namespace)
        except errors.NotFound:
            return False
        return ((found.metadata.labels if found.metadata else None) or {}).get(manifests.INJECT) == "enabled"

    async def _check_ephemeral(self, source: dict[str, Any]) -> None:
        template = (source["ephemeral"] or {}).get("volumeClaimTemplate") or {}
        if await self._provisions((template.get("spec") or {}).get("storageClassName")):
            raise Refused(
                f"volume {source['name']}: ephemeral: a sidecar cannot serve a claim that comes after its pod"
            )

    async def _claimed(self, namespace: str, source: dict[str, Any], *, dry_run: bool) -> injection.Claimed | None:
        name = source.get("claimName", "")
        try:
            claim = await self._client.get(PersistentVolumeClaim, name, namespace)
        except errors.NotFound:
            raise Refused(f"persistentvolumeclaim {name!r} not found: a sidecar needs it before the pod") from None
        spec = claim.spec
        if spec is None or not spec.volume_name or claim.status is None or claim.status.phase != "Bound":
            if spec is not None and not await self._provisions(spec.storage_class_name) and not spec.volume_name:
                return None
            raise Refused(f"persistentvolumeclaim {name!r} is not bound yet: a sidecar needs its volume")
        persistent = await self._client.get(PersistentVolume, spec.volume_name)
        csi = persistent.spec.csi if persistent.spec else None
        if csi is None or csi.driver != NAME or persistent.spec is None:
            return None
        reference = csi.node_publish_secret_ref
        if reference is None:
            raise Refused(f"persistentvolume {spec.volume_name!r}: csi.nodePublishSecretRef is missing")
        try:
            found = await self._client.get(Secret, reference.name or "", reference.namespace or "")
        except errors.NotFound:
            raise Refused(
                f"persistentvolume {spec.volume_name!r}: csi.nodePublishSecretRef: secret {reference.namespace}/"
                f"{reference.name} not found"
            ) from None
        values = {key: base64.b64decode(value).decode() for key, value in (found.data or {}).items()}
        flags = tuple(word for each in persistent.spec.mount_options or () for word in each.split(","))
        made = volume(csi.volume_handle or "", csi.volume_attributes or {}, values, flags)
        secret = safe_name(f"objectfs-{made.id}-secret")
        if not dry_run:
            await self._write_secret(secret, namespace, made, claim)
        return injection.Claimed(made, secret, bool(source.get("readOnly") or csi.read_only))

    async def _provisions(self, storage_class: str | None) -> bool:
        """Whether a class is this driver's."""
        if not storage_class:
            return False
        try:
            return (await self._client.get(StorageClass, storage_class)).provisioner == NAME
        except errors.NotFound:
            return False

    async def _write_secret(self, name: str, namespace: str, found: Volume, claim: PersistentVolumeClaim) -> None:
        metadata = claim.metadata
        assert metadata is not None
        owner = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "name": metadata.name, "uid": metadata.uid}
        data = {key: base64.b64encode(value.encode()).decode() for key, value in environment(found).items()}
        wanted = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": {manifests.LABEL: manifests.MOUNT_LABEL},
                "ownerReferences": [owner],
            },
            "data": data,
        }
        try:
            await self._client.create(decode(Secret, msgspec.json.encode(wanted)))
        except errors.AlreadyExists:
            await self._client.patch(Secret, name, {"data": data}, namespace)


class Server:
    """HTTPS for the API server: POST /mutate, GET /healthz."""

    def __init__(self, injector: Injector) -> None:
        self._injector = injector

    async def __call__(self, request: Request) -> Response:
        if request.path == "/healthz":
            return Response(b"ok", content_type="text/plain", headers=[])
        if (request.method, request.path) != ("POST", "/mutate"):
            return _text("not found", 404)
        try:
            review = msgspec.json.decode(request.body)
            if not isinstance(review, dict):
                return _text("no AdmissionReview", 400)
            return Response(json.dumps(await self._injector.review(review)).encode(), headers=[])
        except msgspec.DecodeError as error:
            return _text(f"no AdmissionReview: {error}", 400)
        except (errors.APIError, OSError, TimeoutError) as error:
            log.error("a pod cannot be looked at: %s", error)
            return _text(f"{type(error).__name__}: {error}", 500)


class Certificate:
    """The webhook's certificate: kept in a Secret, renewed in time, trusted by the webhook's configuration."""

    def __init__(self, client: Client, namespace: str, folder: Path) -> None:
        self._client, self._namespace = client, namespace
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"

    async def ensure(self) -> None:
        """Have a certificate in the files that the API server trusts."""
        identity, authority = await self._identity()
        if not self.key.exists() or self.certificate.read_bytes() != identity.certificate_pem:
            self.key.touch(mode=0o600)
            self.key.write_bytes(identity.key_pem)
            self.certificate.write_bytes(identity.certificate_pem)
        await self._trust(authority)

    async def _identity(self) -> tuple[pki.Identity, bytes]:
        name = manifests.WEBHOOK
        try:
            found = await self._client.get(Secret, name, self._namespace)
        except errors.NotFound:
            found = None
        if found is not None:
            values = {key: base64.b64decode(value) for key, value in (found.data or {}).items()}
            try:
                identity = pki.load(values["tls.key"], values["tls.crt"])
                if not pki.expires_within(identity, RENEW, datetime.datetime.now(datetime.UTC)):
                    return identity, values["ca.crt"]
            except (KeyError, ValueError) as error:
                log.warning("Secret %s is renewed: %s", name, error)
        authority = pki.create_authority(f"{name}-ca")  # of one name, the certificate would pass for self-signed
        identity = pki.issue_server(authority, name, [f"{name}.{self._namespace}.svc"])
        parts = {"tls.key": identity.key_pem, "tls.crt": identity.certificate_pem, "ca.crt": authority.certificate_pem}
        data = {key: base64.b64encode(value).decode() for key, value in parts.items()}
        wanted = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/tls", "data": data}
        wanted["metadata"] = {"name": name, "namespace": self._namespace}
        if found is None:
            await self._client.create(decode(Secret, msgspec.json.encode(wanted)))
        else:
            await self._client.patch(Secret, name, {"data": data}, self._namespace)
        return identity, authority.certificate_pem

    async def _trust(self, authority: bytes) -> None:
        path = f"/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/{manifests.WEBHOOK}"
        found = await self._client.call("GET", path)
        bundle = base64.b64encode(authority).decode()
        if found["webhooks"][0]["clientConfig"].get("caBundle") != bundle:
            headers = {"Content-Type": "application/json-patch+json"}
            patch = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": bundle}]
            await self._client.call("PATCH", path, patch, headers=headers)
            log.info("the API server trusts the webhook's certificate")


async def serve(client: Client, namespace: str, how: injection.Client, port: int) -> None:
    """Serve until cancelled."""
    with tempfile.TemporaryDirectory(prefix="objectfs-webhook-") as folder:
        certificate = Certificate(client, namespace, Path(folder))
        await certificate.ensure()
        server = HTTPServer(Server(Injector(client, how)), _text_refusal, max_body=MAX_BODY, audited=False)
        tls = ServingTLS(certificate.certificate, certificate.key)
        listening = await asyncio.get_running_loop().create_server(server, "", port, ssl=tls.context)
        log.info("the webhook serves port %d", port)
        try:
            while True:
                await asyncio.sleep(KEEP_SECONDS)
                try:
                    await certificate.ensure()
                except (errors.APIError, OSError, TimeoutError) as error:
                    log.warning("the webhook's certificate is not looked at: %s", error)
        finally:
            listening.close()


def _text(message: str, status: int) -> Response:
    return Response(message.encode(), status, "text/plain", headers=[])


def _text_refusal(status: int, message: str) -> Response:
    return _text(message, status)


def _name(pod: dict[str, Any]) -> str:
    metadata = pod.get("metadata") or {}
    return str(metadata.get("name") or metadata.get("generateName") or "")
