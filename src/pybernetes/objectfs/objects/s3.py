"""Objects in an S3 bucket: HTTP with signature version 4, a kept connection for each thread, no library.

An object carries its CRC-32 in its metadata, so that a whole object with wrong bytes is noticed. A refusal (403) is
final; everything else may be tried again.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import http.client
import os
import re
import ssl
import threading
import time
import zlib
from collections.abc import Iterator
from errno import EIO
from typing import NamedTuple
from urllib.parse import quote, urlsplit
from xml.etree import ElementTree

from pybernetes.objectfs.errors import ObjectFSError
from pybernetes.objectfs.objects.store import ObjectInfo, ObjectMissing, ObjectRefused, ObjectStoreError

TIMEOUT_SECONDS = 60
CHECKSUM = "x-amz-meta-crc32"
_EMPTY = hashlib.sha256(b"").hexdigest()


class Place(NamedTuple):
    """Where a bucket is: `https://bucket.s3.eu-west-1.amazonaws.com`, or `http://host:port/bucket` for most others."""

    secure: bool
    host: str
    path: str
    region: str

    @classmethod
    def parse(cls, address: str) -> Place:
        parts = urlsplit(address if "://" in address else f"https://{address}")
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.username or parts.query:
            raise ObjectFSError(f"bucket {address!r}: http(s)://HOST[:PORT]/BUCKET is wanted")
        found = re.search(r"\bs3[.-]([a-z0-9-]+)\.amazonaws\.com", parts.netloc)
        region = found[1] if found else os.environ.get("AWS_REGION", "us-east-1")
        return cls(parts.scheme == "https", parts.netloc, parts.path.rstrip("/"), region)


class Credentials(NamedTuple):
    access_key: str
    secret_key: str
    session_token: str = ""


def signed_headers(
    credentials: Credentials, place: Place, method: str, path: str, query: str, extra: dict[str, str], digest: str,
    now: float,
) -> dict[str, str]:  # fmt: skip
    """The headers of a request with its signature (AWS Signature Version 4)."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    headers = {"host": place.host, "x-amz-content-sha256": digest, "x-amz-date": stamp, **extra}
    if credentials.session_token:
        headers["x-amz-security-token"] = credentials.session_token
    if not credentials.access_key:
        return headers
    names = ";".join(sorted(headers))
    lines = [f"{name}:{headers[name].strip()}" for name in sorted(headers)]
    canonical = "\n".join([method, path, query, *lines, "", names, digest])
    scope = f"{stamp[:8]}/{place.region}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{credentials.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
    )
    return headers


class _Answer(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes


class S3Store:
    """The objects below a prefix of a bucket."""

    def __init__(self, address: str, prefix: str, credentials: Credentials) -> None:
        self._place, self._prefix, self._credentials = Place.parse(address), prefix, credentials
        self._local = threading.local()
        self._context = ssl.create_default_context() if self._place.secure else None

    def create(self) -> None:
        if self._request("HEAD", "", missing=True).status == 404:
            answer = self._request("PUT", "", missing=True)
            if answer.status not in (200, 204, 409):
                raise self._error("PUT", "", answer)

    def put(self, key: str, data: bytes) -> None:
        self._request("PUT", self._key(key), body=data, extra={CHECKSUM: f"{zlib.crc32(data):08x}"})

    def get(self, key: str, offset: int = 0, length: int = -1) -> bytes:
        extra = {}
        if offset or length >= 0:
            if length == 0:
                return b""
            extra["range"] = f"bytes={offset}-{offset + length - 1 if length > 0 else ''}"
        answer = self._request("GET", self._key(key), extra=extra)
        if extra and answer.status == 200 and "content-range" not in answer.headers:
            # A store that does not know ranges sends everything. (Some send a range with status 200.)
            return answer.body[offset:] if length < 0 else answer.body[offset : offset + length]
        expected = answer.headers.get(CHECKSUM)
        if not extra and expected is not None and expected != f"{zlib.crc32(answer.body):08x}":
            raise ObjectStoreError(EIO, f"object {key} came with wrong bytes")
        return answer.body

    def delete(self, key: str) -> None:
        self._request("DELETE", self._key(key), missing=True)

    def list(self, prefix: str = "") -> Iterator[ObjectInfo]:
        token = ""
        while True:
            query = {"list-type": "2", "prefix": self._prefix + prefix}
            if token:
                query["continuation-token"] = token
            answer = self._request("GET", "", query=query)
            try:
                root = ElementTree.fromstring(answer.body)
            except ElementTree.ParseError as error:
                raise ObjectStoreError(EIO, f"the list of objects is not XML: {error}") from error
            for each in root.iterfind("{*}Contents"):
                stamp = each.findtext("{*}LastModified", "")
                yield ObjectInfo(
                    each.findtext("{*}Key", "")[len(self._prefix) :],
                    int(each.findtext("{*}Size", "0")),
                    _seconds(stamp),
                )
            token = root.findtext("{*}NextContinuationToken", "")
            if root.findtext("{*}IsTruncated", "") != "true" or not token:
                return

    def _key(self, key: str) -> str:
        return f"/{self._prefix}{key}"

    def _request(
        self,
        method: str,
        key: str,
        query: dict[str, str] | None = None,
        body: bytes = b"",
        extra: dict[str, str] | None = None,
        missing: bool = False,
    ) -> _Answer:
        path = quote(self._place.path + key, safe="/-_.~") or "/"
        text = "&".join(
            f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}" for name, value in sorted((query or {}).items())
        )
        digest = hashlib.sha256(body).hexdigest() if body else _EMPTY
        headers = signed_headers(self._credentials, self._place, method, path, text, extra or {}, digest, time.time())
        answer = self._exchange(method, f"{path}?{text}" if text else path, body, headers)
        if answer.status == 404:
            if missing:
                return answer
            raise ObjectMissing(EIO, f"object {key} is missing")
        if answer.status in (401, 403):
            words = "the object store refuses the access key, the secret key, or the right to do this"
            raise ObjectRefused(EIO, f"{self._error(method, key, answer)}: {words}")
        if answer.status not in (200, 204, 206) and not (missing and answer.status < 500):
            raise self._error(method, key, answer)
        return answer

    def _exchange(self, method: str, target: str, body: bytes, headers: dict[str, str]) -> _Answer:
        """One request on this thread's connection; a kept one that the server has closed is made anew once."""
        for fresh in (False, True):
            kept: http.client.HTTPConnection | None = getattr(self._local, "connection", None)
            if kept is None or fresh:
                kept = self._local.connection = self._connect()
            try:
                kept.request(method, target, body or None, headers)
                with kept.getresponse() as response:
                    return _Answer(response.status, response.headers, response.read())
            except (OSError, http.client.HTTPException) as error:
                kept.close()
                self._local.connection = None
                if fresh or not isinstance(error, http.client.RemoteDisconnected | ConnectionError):
                    raise ObjectStoreError(EIO, f"{self._place.host}: {error or type(error).__name__}") from error
        raise AssertionError("unreachable")

    def _connect(self) -> http.client.HTTPConnection:
        if self._context is not None:
            return http.client.HTTPSConnection(self._place.host, timeout=TIMEOUT_SECONDS, context=self._context)
        return http.client.HTTPConnection(self._place.host, timeout=TIMEOUT_SECONDS)

    def _error(self, method: str, key: str, answer: _Answer) -> ObjectStoreError:
        found = re.search(rb"<Code>([^<]*)</Code>(?:.*?<Message>([^<]*)</Message>)?", answer.body[:4096], re.DOTALL)
        words = b": ".join(part for part in found.groups() if part).decode(errors="replace") if found else ""
        words = html.unescape(words)
        return ObjectStoreError(
            EIO, f"{method} {self._place.host}{self._place.path}{key}: {answer.status} {words}".rstrip()
        )


def _seconds(stamp: str) -> float:
    import calendar

    try:
        return calendar.timegm(time.strptime(stamp[:19], "%Y-%m-%dT%H:%M:%S"))
    except ValueError:
        return time.time()
