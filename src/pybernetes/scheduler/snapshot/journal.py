"""The rows that have changed since a reader's last look.

Readers remember a position; what came after it is theirs to catch up with. Positions older than the journal's memory
get None: everything may have changed.
"""

from __future__ import annotations


class Journal:
    """An append-only list of row numbers that forgets its beginning."""

    KEEP = 65536

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._start = 0
        """The position of the first row kept."""

    @property
    def position(self) -> int:
        """Where the journal ends now."""
        return self._start + len(self._rows)

    def note(self, row: int) -> None:
        """This row has changed."""
        rows = self._rows
        rows.append(row)
        if len(rows) >= 2 * self.KEEP:
            del rows[: self.KEEP]
            self._start += self.KEEP

    def forget(self) -> None:
        """Everything may have changed."""
        self._start += len(self._rows) + 1
        self._rows.clear()

    def since(self, position: int) -> list[int] | None:
        """The rows that changed since, repeated ones too; None when that is not known any more."""
        offset = position - self._start
        return None if offset < 0 else self._rows[offset:]
