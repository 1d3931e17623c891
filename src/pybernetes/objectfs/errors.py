"""Errors of commands: one line for a person. Errors of files are OSError with the errno the program gets."""


class ObjectFSError(Exception):
    """A command cannot do what it was asked for; the text says why and names what is concerned."""


class NotFormatted(ObjectFSError):
    """The metadata's database holds no volume."""
