"""The error result of a plugin: a code of the CNI specification, a message, details."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # typing takes half a megabyte that a node's init process can do without
if TYPE_CHECKING:
    from typing import Any

# The codes that the specification gives a meaning; from 100 on they are the plugin's own.
UNKNOWN = 0
INCOMPATIBLE_VERSION = 1
UNSUPPORTED_FIELD = 2
UNKNOWN_CONTAINER = 3
INVALID_ENVIRONMENT = 4
IO_FAILURE = 5
DECODING_FAILURE = 6
INVALID_NETWORK_CONFIG = 7
INVALID_NETNS = 8
TRY_AGAIN_LATER = 11
PLUGIN_NOT_AVAILABLE = 50
LIMITED_CONNECTIVITY = 51
INTERNAL = 999


class CNIError(Exception):
    """A network could not be set up, checked or taken down; `code` is one of the specification's."""

    def __init__(self, msg: str, code: int = INTERNAL, details: str = "") -> None:
        super().__init__(msg)
        self.msg = msg
        self.code = code
        self.details = details

    def __str__(self) -> str:
        return f"{self.msg}; {self.details}" if self.details else self.msg

    def within(self, context: str) -> CNIError:
        """The same error, with the operation that failed."""
        return CNIError(f"{context}: {self.msg}", self.code, self.details)

    def as_json(self, version: str) -> dict[str, Any]:
        """The error as a plugin prints it."""
        body: dict[str, Any] = {"cniVersion": version, "code": self.code, "msg": self.msg}
        if self.details:
            body["details"] = self.details
        return body


class NoConfigError(CNIError):
    """A folder holds no network configuration, or none of the wanted name."""

    def __init__(self, msg: str) -> None:
        super().__init__(msg, INVALID_NETWORK_CONFIG)


class NamespaceNotFound(CNIError):
    """The network namespace is not there (any more), which a DEL takes for done."""


def reason(error: OSError) -> str:
    """The system's word for an error, in the form plugins print: `file exists`, `permission denied`."""
    text = os.strerror(error.errno) if error.errno else str(error)
    return text[:1].lower() + text[1:]
