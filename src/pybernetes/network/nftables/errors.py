"""Errors that the kernel returns for a batch, with the object each is about."""

from __future__ import annotations

import os
from collections.abc import Sequence


class NftablesError(OSError):
    """A batch was refused; none of it was done. `subject` names the first object that the kernel did not take."""

    def __init__(self, code: int, subject: str, words: str = "", more: Sequence[str] = ()) -> None:
        reason = f"{os.strerror(code)} ({words})" if words else os.strerror(code)
        rest = f"; {len(more)} more: {', '.join(more[:3])}{', ...' if len(more) > 3 else ''}" if more else ""
        super().__init__(code, f"{reason}{rest}")
        self.subject = subject

    def __str__(self) -> str:
        return f"nftables: {self.subject}: {self.strerror}"


class GenerationChanged(NftablesError):
    """Somebody else changed the rules after the generation that the batch was made for."""
