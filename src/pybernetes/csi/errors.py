"""How a driver says no: one exception with gRPC's code by the name that Go prints."""

from __future__ import annotations

from typing import Final

from pybernetes.cri.errors import CODES

UNFINISHED: Final = frozenset(("Canceled", "DeadlineExceeded", "Unavailable", "ResourceExhausted", "Aborted"))
"""Codes after which the driver may still be working on the call, so that what it was to make may come to be."""


class CSIError(Exception):
    """A call that the driver refused, or that did not reach it (`Unavailable`)."""

    def __init__(self, code: str, message: str) -> None:
        if code not in CODES:
            raise ValueError(f"not a code of gRPC: {code!r}")
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"rpc error: code = {self.code} desc = {self.message}"

    @property
    def final(self) -> bool:
        """Whether the driver has done nothing, and will not."""
        return self.code not in UNFINISHED


def invalid(message: str) -> CSIError:
    """A request that no try makes right."""
    return CSIError("InvalidArgument", message)


def not_found(message: str) -> CSIError:
    """The error for an object that does not exist."""
    return CSIError("NotFound", message)
