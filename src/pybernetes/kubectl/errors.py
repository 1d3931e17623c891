"""Errors that end a command: their text is what the user reads; Status errors in kubectl's wording."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class CLIError(Exception):
    """An error of kubectl itself: printed with `error: ` in front."""

    code = 1

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.message = message
        self.code = code

    def text(self) -> str:
        """The text that is printed on stderr."""
        return self.message if self.message.startswith("error: ") else f"error: {self.message}"

    def bare(self) -> str:
        """The message without its prefix, as a line among others."""
        return self.message


def usage_error(path: str, message: str) -> CLIError:
    """An error of the command line, with how to get help for the command."""
    return CLIError(f"{message}\nSee '{path} -h' for help and examples")


class Exit(CLIError):
    """Ends the command with an exit code and prints nothing (or what is given, as it is)."""

    def __init__(self, code: int = 1, message: str = "") -> None:
        super().__init__(message, code)

    def text(self) -> str:
        return self.message


class PlainError(CLIError):
    """Printed as it is, without `error: `."""

    def text(self) -> str:
        return self.message


class ConnectionFailed(CLIError):
    """The server could not be reached or the connection broke."""

    def __init__(self, message: str, url: str = "", refused_host: str = "", timed_out: bool = False) -> None:
        super().__init__(message)
        self.url = url
        self.refused_host = refused_host
        self.timed_out = timed_out

    def text(self) -> str:
        if self.refused_host:
            return (
                f"The connection to the server {self.refused_host} was refused"
                " - did you specify the right host or port?"
            )
        return f"Unable to connect to the server: {self.message}"

    def bare(self) -> str:
        return self.text()


class DecodeError(CLIError):
    """A document that is no object of an API; the others of the same command go on."""


class NoMatch(CLIError):
    """The server has no such resource or kind."""

    def text(self) -> str:
        return f"error: {self.message}"


class Aggregate(CLIError):
    """Several errors, each on its own line; a single one reads as if it were alone."""

    def __init__(self, errors: Sequence[CLIError]) -> None:
        super().__init__("\n".join(error.bare() for error in errors))
        self.errors = list(errors)

    def text(self) -> str:
        if len(self.errors) == 1:
            return self.errors[0].text()
        return "".join(f"{error.bare()}\n" for error in self.errors)


class StatusError(CLIError):
    """The server answered with a Status object instead of success."""

    def __init__(self, status: dict[str, Any]) -> None:
        self.status = status
        super().__init__(str(status.get("message") or "unknown"))

    @property
    def reason(self) -> str:
        return str(self.status.get("reason") or "")

    @property
    def http_code(self) -> int:
        return int(self.status.get("code") or 0)

    @property
    def details(self) -> dict[str, Any]:
        return self.status.get("details") or {}

    def causes(self, kind: str) -> list[dict[str, Any]]:
        """The causes of one reason."""
        return [cause for cause in self.details.get("causes") or () if cause.get("reason") == kind]

    def text(self) -> str:
        if self.reason == "Invalid":
            return self._invalid()
        return self.bare()

    def bare(self) -> str:
        if self.reason == "Unauthorized":
            return f"error: You must be logged in to the server ({self.message})"
        if self.reason:
            return f"Error from server ({self.reason}): {self.message}"
        return f"Error from server: {self.message}"

    def _invalid(self) -> str:
        details = self.status.get("details")
        subject = "The request is invalid"
        if not details:
            return f"{subject}: {self.message}" if self.status.get("message") else subject
        causes = details.get("causes") or []
        if details.get("kind") or details.get("name"):
            subject = f'The {details.get("kind", "")} "{details.get("name", "")}" is invalid'
        elif self.status.get("message") and not causes:
            subject = f"{subject}: {self.message}"
        lines = list(dict.fromkeys(f"{cause.get('field', '')}: {cause.get('message', '')}" for cause in causes))
        if not lines:
            return subject
        if len(lines) == 1:
            return f"{subject}: {lines[0]}\n"
        return f"{subject}: \n" + "".join(f"* {line}\n" for line in lines)

    def with_source(self, verb: str, source: str) -> StatusError:
        """The same error, saying which file it is about."""
        if not source:
            return self
        return StatusError({**self.status, "message": f'error when {verb} "{source}": {self.message}'})


def add_source(error: CLIError, verb: str, source: str) -> CLIError:
    """Names the file that an error is about."""
    if not source or isinstance(error, ConnectionFailed):
        return error
    if isinstance(error, StatusError):
        return error.with_source(verb, source)
    return CLIError(f'error when {verb} "{source}": {error.message}')


def not_found(error: object) -> bool:
    """Whether the server said that the object is not there."""
    return isinstance(error, StatusError) and error.reason == "NotFound"


def raise_all(errors: Sequence[CLIError]) -> None:
    """Raises nothing, the only error, or all of them together."""
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise Aggregate(errors)
