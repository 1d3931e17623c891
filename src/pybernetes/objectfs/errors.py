"""Errors of commands: one line for a person. Errors of files are OSError with the errno the program gets."""


class Failure(OSError):
    """An error of a database or an object store: the program gets its errno, people its text."""

    def __str__(self) -> str:
        return str(self.strerror or super().__str__())


class ObjectFSError(Exception):
    """A command cannot do what it was asked for; the text says why and names what is concerned."""


class NotFormatted(ObjectFSError):
    """The metadata's database holds no volume."""
