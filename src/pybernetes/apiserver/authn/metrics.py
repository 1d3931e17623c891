"""Uses of service account tokens, counted in upstream's names: how many clients still have an old kind of token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..counters import Counter
from ..metrics import COLLECTORS

if TYPE_CHECKING:
    from prometheus_client.core import Metric


def _counter(name: str, help: str) -> Counter:
    made = Counter(f"serviceaccount_{name}_total", help, ())
    made.add(times=0)  # so that it is there before the first use, as upstream's
    return made


STALE = _counter("stale_tokens", "Tokens of pods that should have been replaced by now.")
VALID = _counter("valid_tokens", "Tokens of pods with an extended life that are still fresh.")
LEGACY = _counter("legacy_tokens", "Tokens in Secrets.")
MANUAL = _counter("legacy_manual_token_uses", "Tokens in Secrets that users made.")
AUTO_GENERATED = _counter("legacy_auto_token_uses", "Tokens in Secrets that their account lists.")
INVALIDATED = _counter("invalid_legacy_auto_token_uses", "Tokens in Secrets that are marked as invalid.")


def collect() -> Iterator[Metric]:
    """The families, for the library."""
    for each in (STALE, VALID, LEGACY, MANUAL, AUTO_GENERATED, INVALIDATED):
        yield from each.collect()


COLLECTORS.append(collect)
