"""Kubernetes' functions of patterns: `find` and `findAll`; patterns are RE2's, so none takes more than linear time."""

from __future__ import annotations

import re

from ...apiextensions.linear import Linear
from ...apiextensions.patterns import PatternError, compile_pattern
from ..functions import Library, method
from ..types import INT, STRING, list_of
from ..values import EvaluationError


def _compiled(pattern: str) -> re.Pattern[str] | Linear:
    try:
        return compile_pattern(pattern)
    except PatternError as error:
        raise EvaluationError(f"Illegal regex: {error}") from None


def _find(text: str, pattern: str) -> str:
    found = _compiled(pattern).search(text)
    return found[0] if found else ""


def _find_all(text: str, pattern: str, count: int = -1) -> list[str]:
    found = [match[0] for match in _compiled(pattern).finditer(text)]
    return found if count < 0 else found[:count]


LIBRARY: Library = {
    "find": [method("string_find_string", (STRING, STRING), STRING, _find)],
    "findAll": [
        method("string_find_all_string", (STRING, STRING), list_of(STRING), _find_all),
        method("string_find_all_string_int", (STRING, STRING, INT), list_of(STRING), _find_all),
    ],
}
