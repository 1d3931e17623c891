"""Protobuf classes straight from a `.proto` file beside the code: no compiler, no generated modules.

Read is what interface files of this kind use: proto3 messages with scalar, message, enum, repeated and map fields,
enums (also inside a message), and services. Anything else (oneof, import, options) is refused with its line, because a
field read wrongly would be silent on the wire. Each file has a pool of its own, so that two files may name the same
message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)

SCALARS = {
    name: getattr(descriptor_pb2.FieldDescriptorProto, f"TYPE_{name.upper()}")
    for name in ("double", "float", "int64", "uint64", "int32", "uint32", "fixed64", "bool", "string", "bytes")
}
REPEATED = descriptor_pb2.FieldDescriptorProto.LABEL_REPEATED
OPTIONAL = descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL
MESSAGE = descriptor_pb2.FieldDescriptorProto.TYPE_MESSAGE
ENUM = descriptor_pb2.FieldDescriptorProto.TYPE_ENUM

_TOKEN = re.compile(r"\s+|//[^\n]*|([A-Za-z_][\w.]*|\d+|\"[^\"]*\"|[{}()<>;=,])|(.)", re.DOTALL)


class ProtoError(ValueError):
    """The file is not one that can be read here."""


@dataclass(frozen=True)
class Method:
    """One call of a service: its path on the wire, its two classes, whether the answer is a stream."""

    service: str
    name: str
    path: str
    request: Any
    response: Any
    streams: bool


@dataclass
class Proto:
    """The declarations of a file: classes and enum values by name, and its methods in order."""

    package: str
    names: dict[str, Any] = field(default_factory=dict)
    methods: list[Method] = field(default_factory=list)


def read(path: Path) -> Proto:
    """The classes of the file at `path`."""
    return parse(path.read_text(encoding="utf-8"), path.name)


def parse(text: str, name: str) -> Proto:
    """The classes of a file's text; `name` is for error messages."""
    reader = _Reader(text, name)
    reader.file()
    reader.resolve()
    pool = descriptor_pool.DescriptorPool()
    pool.Add(reader.out)
    proto = Proto(reader.out.package)
    prefix = f"{proto.package}."
    for message in reader.out.message_type:
        proto.names[message.name] = message_factory.GetMessageClass(pool.FindMessageTypeByName(prefix + message.name))
    for enum in reader.out.enum_type:
        proto.names.update((value.name, value.number) for value in enum.value)
    for service, method, request, response, streams in reader.rpcs:
        path = f"/{prefix}{service}/{method}"
        proto.methods.append(
            Method(service, method, path, reader.of(proto, request), reader.of(proto, response), streams)
        )
    return proto


class _Reader:
    """Turns tokens into a `FileDescriptorProto`."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.out = descriptor_pb2.FileDescriptorProto(name=name, syntax="proto3")
        self.rpcs: list[tuple[str, str, str, str, bool]] = []
        self.tokens: list[tuple[str, int]] = []
        line = 1
        for match in _TOKEN.finditer(text):
            if match[2]:
                raise ProtoError(f"{name}:{line}: unexpected {match[2]!r}")
            if match[1]:
                self.tokens.append((match[1], line))
            line += match[0].count("\n")
        self.at = 0

    def fail(self, wanted: str) -> ProtoError:
        token, line = self.tokens[min(self.at, len(self.tokens) - 1)] if self.tokens else ("", 1)
        return ProtoError(f"{self.name}:{line}: {wanted}, not {token!r}")

    def peek(self) -> str:
        if self.at >= len(self.tokens):
            raise self.fail("more was expected")
        return self.tokens[self.at][0]

    def take(self, *expected: str) -> str:
        """The next token; if any are given, it must be one of them."""
        token = self.peek()
        if expected and token not in expected:
            raise self.fail(f"expected {' or '.join(expected)}")
        self.at += 1
        return token

    def word(self) -> str:
        if not re.match(r"[A-Za-z_]", self.peek()):
            raise self.fail("expected a name")
        return self.take()

    def number(self) -> int:
        if not self.peek().isdigit():
            raise self.fail("expected a number")
        return int(self.take())

    def file(self) -> None:
        while self.at < len(self.tokens):
            match self.take("syntax", "package", "service", "message", "enum"):
                case "syntax":
                    self.take("=")
                    self.take('"proto3"')
                    self.take(";")
                case "package":
                    self.out.package = self.word()
                    self.take(";")
                case "service":
                    self.service()
                case "message":
                    self.message(self.out.message_type.add())
                case "enum":
                    self.enum(self.out.enum_type.add())

    def service(self) -> None:
        service = self.word()
        self.take("{")
        while self.take("rpc", "}") == "rpc":
            name = self.word()
            self.take("(")
            request = self.word()
            self.take(")")
            self.take("returns")
            self.take("(")
            response = self.word()
            streams = response == "stream"
            if streams:
                response = self.word()
            self.take(")")
            self.take(";")
            self.rpcs.append((service, name, request, response, streams))

    def enum(self, out: Any) -> None:
        out.name = self.word()
        self.take("{")
        while self.peek() != "}":
            value = out.value.add(name=self.word())
            self.take("=")
            value.number = self.number()
            self.take(";")
        self.take("}")

    def message(self, out: Any) -> None:
        out.name = self.word()
        self.take("{")
        while self.peek() != "}":
            kind = self.word()
            if kind == "enum":
                self.enum(out.enum_type.add())
                continue
            made = out.field.add(label=OPTIONAL)
            if kind in ("repeated", "map"):
                made.label = REPEATED
            if kind == "repeated":
                kind = self.word()
            if kind == "map":
                self.map(out, made)
            else:
                self.type(made, kind)
                made.name = self.word()
            self.take("=")
            made.number = self.number()
            self.take(";")
        self.take("}")

    def map(self, out: Any, made: Any) -> None:
        """A map is a repeated message of a key and a value, which protobuf knows by an option."""
        self.take("<")
        key = self.word()
        self.take(",")
        value = self.word()
        self.take(">")
        made.name = self.word()
        entry = out.nested_type.add(name="".join(part.title() for part in made.name.split("_")) + "Entry")
        entry.options.map_entry = True
        self.type(entry.field.add(name="key", number=1, label=OPTIONAL), key)
        self.type(entry.field.add(name="value", number=2, label=OPTIONAL), value)
        made.type, made.type_name = MESSAGE, f".{self.out.package}.{out.name}.{entry.name}"

    def type(self, made: Any, kind: str) -> None:
        if kind in SCALARS:
            made.type = SCALARS[kind]
        else:
            made.type_name = kind

    def resolve(self) -> None:
        """Names of types become full ones, now that all are known."""
        package = f".{self.out.package}."
        messages = {message.name for message in self.out.message_type}
        enums = {enum.name for enum in self.out.enum_type}
        for message in self.out.message_type:
            own = {enum.name for enum in message.enum_type}
            for part in (message, *message.nested_type):
                for made in part.field:
                    kind = made.type_name
                    if not kind or kind.startswith("."):
                        continue
                    if kind in own:
                        made.type, made.type_name = ENUM, f"{package}{message.name}.{kind}"
                    elif kind in enums or kind in messages:
                        made.type, made.type_name = (ENUM if kind in enums else MESSAGE), package + kind
                    else:
                        raise ProtoError(f"{self.name}: {message.name}.{made.name}: no such type: {kind}")

    def of(self, proto: Proto, name: str) -> Any:
        try:
            return proto.names[name]
        except KeyError:
            raise ProtoError(f"{self.name}: no such message: {name}") from None
