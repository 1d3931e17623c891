"""Decompresses by the magic number in the first bytes, not by name or media type.

The modules are imported for the first stream that needs them; zstd's is not in Python's library before 3.14.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import IO, Any

GZIP, BZIP2, XZ, ZSTD = b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd"
LARGEST_WINDOW = 128 << 20
"""The window that zstd accepts: the default of its own program."""


class Damaged(ValueError):
    """A compressed stream is invalid."""


def kind_of(head: bytes) -> str:
    """`gzip`, `bzip2`, `xz`, `zstd`, or nothing for what is plain; `head` are the first 6 bytes at least."""
    if head.startswith(GZIP):
        return "gzip"
    if head.startswith(BZIP2):
        return "bzip2"
    if head.startswith(XZ):
        return "xz"
    if head.startswith(ZSTD):
        return "zstd"
    return ""


def plain(stream: IO[bytes]) -> IO[bytes]:
    """The stream without its compression; it must be seekable. Reading raises `Damaged` for what is none."""
    head = stream.read(6)
    stream.seek(0)
    opened = _OPEN.get(kind_of(head))
    return _Told(opened(stream), stream) if opened else stream  # type: ignore[return-value]


def _gzip(stream: IO[bytes]) -> Any:
    import gzip

    return gzip.GzipFile(fileobj=stream)


def _bzip2(stream: IO[bytes]) -> Any:
    import bz2

    return bz2.BZ2File(stream)


def _xz(stream: IO[bytes]) -> Any:
    import lzma

    return lzma.LZMAFile(stream)


def _zstd(stream: IO[bytes]) -> Any:
    import zstandard

    reader = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
    return reader.stream_reader(stream, read_across_frames=True, closefd=False)


_OPEN: dict[str, Callable[[IO[bytes]], Any]] = {
    "gzip": _gzip,
    "bzip2": _bzip2,
    "xz": _xz,
    "zstd": _zstd,
}


class _Told(io.RawIOBase):
    """A decompressor whose complaints are all of one kind; closes what it reads from."""

    def __init__(self, opened: Any, source: IO[bytes]) -> None:
        self._opened = opened
        self._source = source

    def read(self, size: int = -1) -> bytes:
        """The stream's."""
        try:
            return bytes(self._opened.read(size))
        except OSError as error:
            if error.errno is not None:
                raise  # the disk's
            raise Damaged(f"damaged: {error}") from None
        except Exception as error:  # EOFError, and each module has an error of its own
            raise Damaged(f"damaged: {error}") from None

    def close(self) -> None:
        """Closes both."""
        if not self.closed:
            self._opened.close()
            self._source.close()
        super().close()
