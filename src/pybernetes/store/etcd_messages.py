"""The few messages of etcd's v3 API that the store uses, as protobuf classes made at import.

Only the fields that are used: protobuf skips the others. An enum is an `int32` here, which is the same on the wire. A
field inside a `oneof` is an ordinary field here: we set one at a time, and etcd reads an absent `mod_revision` as 0.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

FIELDS = """
KeyValue: bytes key 1, int64 mod_revision 3, bytes value 5
Event: int32 type 1, KeyValue kv 2, KeyValue prev_kv 3
ResponseHeader: int64 revision 3

RangeRequest: bytes key 1, bytes range_end 2, int64 limit 3, int64 revision 4, bool count_only 9
RangeResponse: ResponseHeader header 1, KeyValue* kvs 2, int64 count 4
PutRequest: bytes key 1, bytes value 2, int64 lease 3
DeleteRangeRequest: bytes key 1, bytes range_end 2
DeleteRangeResponse: ResponseHeader header 1, int64 deleted 2

Compare: int32 result 1, int32 target 2, bytes key 3, int64 mod_revision 6
RequestOp: RangeRequest request_range 1, PutRequest request_put 2, DeleteRangeRequest request_delete_range 3
ResponseOp: RangeResponse response_range 1
TxnRequest: Compare* compare 1, RequestOp* success 2, RequestOp* failure 3
TxnResponse: ResponseHeader header 1, bool succeeded 2, ResponseOp* responses 3

CompactionRequest: int64 revision 1
CompactionResponse: ResponseHeader header 1

WatchCreateRequest: bytes key 1, bytes range_end 2, int64 start_revision 3, bool progress_notify 4, bool prev_kv 6
WatchRequest: WatchCreateRequest create_request 1
WatchResponse: ResponseHeader header 1, bool created 3, bool canceled 4, int64 compact_revision 5, \
string cancel_reason 6, Event* events 11

LeaseGrantRequest: int64 TTL 1
LeaseGrantResponse: int64 ID 2, int64 TTL 3

StatusRequest:
StatusResponse: ResponseHeader header 1, string version 2, string* errors 8
"""

PUT, DELETE = 0, 1
"""`Event.type`"""
EQUAL, MOD = 0, 2
"""`Compare.result` and `Compare.target`: the key's last revision is the one given; 0 is that of an absent key."""


def _build() -> dict[str, Any]:
    types = {name: getattr(descriptor_pb2.FieldDescriptorProto, "TYPE_" + name.upper()) for name in SCALARS}
    file = descriptor_pb2.FileDescriptorProto(name="etcd.proto", package="etcd", syntax="proto3")
    for line in FIELDS.strip().splitlines():
        if not line:
            continue
        name, _, fields = line.partition(":")
        message = file.message_type.add(name=name)
        for field in filter(None, fields.strip().split(", ")):
            kind, field_name, number = field.split()
            repeated = kind.endswith("*")
            kind = kind.removesuffix("*")
            made = message.field.add(name=field_name, number=int(number), label=3 if repeated else 1)
            if kind in types:
                made.type = types[kind]
            else:
                made.type = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
                made.type_name = f".etcd.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        message.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"etcd.{message.name}"))
        for message in file.message_type
    }


SCALARS = ("bytes", "string", "bool", "int32", "int64")
_classes = _build()


def __getattr__(name: str) -> Any:
    try:
        return _classes[name]
    except KeyError:
        raise AttributeError(name) from None
