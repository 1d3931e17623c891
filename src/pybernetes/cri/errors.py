"""How a runtime says no: one exception, with gRPC's code by the name that Go prints.

Its text is the one of upstream's kubelet, because it ends up in events and container statuses that users read:
`rpc error: code = NotFound desc = failed to resolve image`.
"""

from __future__ import annotations

CODES = {
    "Canceled": 1,
    "Unknown": 2,
    "InvalidArgument": 3,
    "DeadlineExceeded": 4,
    "NotFound": 5,
    "AlreadyExists": 6,
    "PermissionDenied": 7,
    "ResourceExhausted": 8,
    "FailedPrecondition": 9,
    "Aborted": 10,
    "OutOfRange": 11,
    "Unimplemented": 12,
    "Internal": 13,
    "Unavailable": 14,
    "DataLoss": 15,
    "Unauthenticated": 16,
}
_NAMES = {number: name for name, number in CODES.items()}


class CRIError(Exception):
    """A call that the runtime refused, or that did not reach it (`Unavailable`)."""

    def __init__(self, code: str, message: str) -> None:
        if code not in CODES:
            raise ValueError(f"not a code of gRPC: {code!r}")
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return f"rpc error: code = {self.code} desc = {self.message}"

    @property
    def not_found(self) -> bool:
        """Whether what was asked for is not there (any more)."""
        return self.code == "NotFound"


def code_name(number: int) -> str:
    """The name of a code on the wire; one that gRPC does not define is `Unknown`."""
    return _NAMES.get(number, "Unknown")
