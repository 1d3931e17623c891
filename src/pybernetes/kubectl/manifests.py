"""The documents of manifests: files, folders, stdin, URLs and kustomizations, YAML or JSON, one after another."""

from __future__ import annotations

import os
import sys

from pybernetes.kubectl import data
from pybernetes.kubectl.errors import CLIError, ConnectionFailed, DecodeError, add_source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

_SUFFIXES = (".json", ".yaml", ".yml")


def parse_yaml(raw: bytes) -> Any:
    """The first YAML document. Raises ValueError with upstream's words."""
    from pybernetes.api.yaml import YAMLProblem, yaml_to_value

    try:
        return yaml_to_value(raw)[0]
    except YAMLProblem as error:
        raise ValueError(str(error)) from None


def split(raw: bytes) -> list[bytes]:
    """The documents of a YAML stream."""
    if raw.startswith(b"\xef\xbb\xbf"):
        raw = raw[3:]
    if b"\r\n" in raw:
        raw = raw.replace(b"\r\n", b"\n")
    documents: list[bytes] = []
    current: list[bytes] = []
    for line in raw.split(b"\n"):
        if line.startswith(b"---") and (len(line) == 3 or line[3:4] in (b" ", b"\t", b"#")):
            documents.append(b"\n".join(current))
            current = [line[3:].strip()] if line[3:].strip() and not line[3:].strip().startswith(b"#") else []
        else:
            current.append(line)
    return [*documents, b"\n".join(current)]


def documents(raw: bytes) -> Iterator[Any]:
    """The objects of a manifest. Raises ValueError."""
    head = raw.lstrip()[:1]
    if head in (b"{", b"["):
        yield from _json_documents(raw)
        return
    for document in split(raw):
        if not _has_content(document):
            continue
        value = parse_yaml(document)
        if value is not None:
            yield value


def _has_content(document: bytes) -> bool:
    return any(line.strip() and not line.lstrip().startswith(b"#") for line in document.split(b"\n"))


def _json_documents(raw: bytes) -> Iterator[Any]:
    """JSON objects one after another, with or without `---` between them, or YAML in flow style."""
    try:
        found = data.stream(raw)
    except ValueError as error:
        problem = str(error)
        try:
            found = [parse_yaml(document) for document in split(raw) if _has_content(document)]
        except ValueError:
            raise ValueError(problem if problem == "unexpected EOF" else f"json parse error: {problem}") from None
    yield from found


def objects(source: str, raw: bytes) -> Iterator[dict[str, Any]]:
    """The objects of a manifest with the source in every error; Lists are taken apart by the caller."""
    try:
        for value in documents(raw):
            if not isinstance(value, dict):
                raise ValueError(not_an_object(value))
            yield value
    except ValueError as error:
        text = str(error)
        if text.startswith(("yaml:", "error converting")):
            text = f"error converting YAML to JSON: {text}" if text.startswith("yaml:") else text
        raise DecodeError(
            f"error parsing {source}: {text}" if source != "STDIN" else f"error parsing STDIN: {text}"
        ) from None


def not_an_object(value: Any) -> str:
    """The message for a document that is no object."""
    kind = "string" if isinstance(value, str) else "array" if isinstance(value, list) else "number"
    if isinstance(value, bool):
        kind = "bool"
    return (
        f"couldn't get version/kind; json parse error: json: cannot unmarshal {kind} into Go value of type"
        ' struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
    )


def sources(filenames: list[str], recursive: bool = False, kustomize: str = "") -> Iterator[tuple[str, bytes]]:
    """Names and contents of what `-f`, `-R` and `-k` name. Raises CLIError."""
    if kustomize:
        from pybernetes.kubectl.kustomize import build

        yield "", build(kustomize)
        return
    for name in filenames:
        if name == "-":
            yield "STDIN", sys.stdin.buffer.read()
        elif name.startswith(("http://", "https://")):
            yield name, fetch(name)
        else:
            yield from _paths(name, recursive)


def _paths(name: str, recursive: bool) -> Iterator[tuple[str, bytes]]:
    names = [name]
    if not os.path.exists(name):
        import glob

        names = sorted(glob.glob(name)) if any(char in name for char in "*?[") else []
        if not names:
            raise CLIError(f'the path "{name}" does not exist')
    for path in names:
        if not os.path.isdir(path):
            yield path, _read(path)
            continue
        found = False
        for each in _walk(path, recursive):
            found = True
            yield each, _read(each)
        if not found:
            continue
    if len(names) == 1 and os.path.isdir(name) and not any(True for _ in _walk(name, recursive)):
        raise CLIError(f"error reading [{name}]: recognized file extensions are [.json .yaml .yml]")


def _walk(folder: str, recursive: bool) -> Iterator[str]:
    for entry in sorted(os.listdir(folder)):
        path = os.path.normpath(os.path.join(folder, entry))
        if os.path.isdir(path):
            if recursive:
                yield from _walk(path, True)
        elif path.endswith(_SUFFIXES):
            yield path


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise CLIError(f"open {path}: {(error.strerror or str(error)).lower()}") from None


_PATIENCE = 60
"""Seconds in which a server must send the next bytes of a manifest."""


def fetch(url: str) -> bytes:
    """The content of a URL; a server's 5xx is asked again, three times in all."""
    import time
    import urllib.error
    import urllib.request

    for attempt in range(3):
        try:
            with urllib.request.urlopen(url, timeout=_PATIENCE) as answer:
                return bytes(answer.read())
        except urllib.error.HTTPError as error:
            if error.code < 500 or attempt == 2:
                raise CLIError(
                    f'unable to read URL "{url}", server reported {error.code} {error.reason}, status code={error.code}'
                ) from None
            time.sleep(1)
        except (OSError, ValueError) as error:
            raise _unreachable(url, getattr(error, "reason", error)) from None
    raise AssertionError


def _unreachable(url: str, reason: object) -> ConnectionFailed:
    """The error of a URL whose server does not answer, as for the API server."""
    import socket
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if isinstance(reason, socket.gaierror):
        return ConnectionFailed(f"dial tcp: lookup {parts.hostname}: no such host", url)
    if isinstance(reason, ConnectionRefusedError):
        return ConnectionFailed("connect: connection refused", url, refused_host=parts.netloc.rpartition("@")[2])
    return ConnectionFailed(str(reason), url)


__all__ = ["add_source", "documents", "fetch", "objects", "parse_yaml", "sources", "split"]
