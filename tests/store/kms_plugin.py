"""A KMS plugin (v2) as others write it, with real protobuf messages; keys are numbers that it adds to each byte."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # type: ignore[import-untyped]

FIELDS = {
    "StatusRequest": {},
    "StatusResponse": {"version": "string", "healthz": "string", "key_id": "string"},
    "DecryptRequest": {"ciphertext": "bytes", "uid": "string", "key_id": "string", "annotations": "Entry*"},
    "DecryptResponse": {"plaintext": "bytes"},
    "EncryptRequest": {"plaintext": "bytes", "uid": "string"},
    "EncryptResponse": {"ciphertext": "bytes", "key_id": "string", "annotations": "Entry*"},
    "Entry": {"key": "string", "value": "bytes"},
}


def _messages() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="kms-test.proto", package="kmstest", syntax="proto3")
    proto = descriptor_pb2.FieldDescriptorProto
    for name, fields in FIELDS.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields.items(), 1):
            made = message.field.add(name=field, number=number, label=3 if kind.endswith("*") else 1)
            made.type = proto.TYPE_MESSAGE if kind == "Entry*" else getattr(proto, f"TYPE_{kind.upper()}")
            if kind == "Entry*":
                made.type_name = ".kmstest.Entry"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"kmstest.{name}")) for name in FIELDS}


class Plugin:
    """Listens at a socket. `key` is the one in use; those in `lost` it has no longer.

    If it `encrypts_with` another it changes its mind between two answers.
    """

    def __init__(self, socket: Path) -> None:
        self.key = 1
        self.encrypts_with: int | None = None
        self.lost: set[str] = set()
        self.healthy = True
        self.calls: list[str] = []
        self.endpoint = f"unix://{socket}"
        self._pb = _messages()
        self._server = grpc.server(ThreadPoolExecutor(2))
        methods = {
            name: grpc.unary_unary_rpc_method_handler(
                getattr(self, f"_{name.lower()}"),
                request_deserializer=self._pb[f"{name}Request"].FromString,
                response_serializer=self._pb[f"{name}Response"].SerializeToString,
            )
            for name in ("Status", "Encrypt", "Decrypt")
        }
        handler = grpc.method_handlers_generic_handler("v2.KeyManagementService", methods)
        self._server.add_generic_rpc_handlers((handler,))
        self._server.add_insecure_port(self.endpoint)
        self._server.start()

    def close(self) -> None:
        self._server.stop(0).wait()

    def _status(self, request: Any, context: Any) -> Any:
        self.calls.append("Status")
        healthz = "ok" if self.healthy else "the vault is sealed"
        return self._pb["StatusResponse"](version="v2", healthz=healthz, key_id=f"key-{self.key}")

    def _encrypt(self, request: Any, context: Any) -> Any:
        self.calls.append("Encrypt")
        assert request.uid
        key = self.encrypts_with or self.key
        ciphertext = bytes((byte + key) % 256 for byte in request.plaintext)
        annotations = [self._pb["Entry"](key="kms.example.com", value=b"note")]
        return self._pb["EncryptResponse"](ciphertext=ciphertext, key_id=f"key-{key}", annotations=annotations)

    def _decrypt(self, request: Any, context: Any) -> Any:
        self.calls.append("Decrypt")
        if request.key_id in self.lost or [each.value for each in request.annotations] != [b"note"]:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such key")
        key = int(request.key_id.removeprefix("key-"))
        return self._pb["DecryptResponse"](plaintext=bytes((byte - key) % 256 for byte in request.ciphertext))
