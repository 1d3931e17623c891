"""Parses --chmod: a mode in octal digits, or the changes of chmod(1), as `u=rwX,go=rX`. Pure."""

from __future__ import annotations

import re
import stat

_SHIFTS = {"u": 6, "g": 3, "o": 0}
_BITS = {"r": 4, "w": 2, "x": 1}
_CLAUSE = re.compile(r"([ugoa]*)((?:[-+=](?:[rwxXst]*|[ugo]))+)")
_CHANGE = re.compile(r"([-+=])([ugo](?![rwxXst])|[rwxXst]*)")


def check(text: str) -> str:
    """The text, if it is one; ValueError."""
    octal = re.fullmatch(r"[0-7]{1,4}", text)
    if text and not octal and not all(_CLAUSE.fullmatch(each) for each in text.split(",")):
        raise ValueError(f"--chmod={text} is no mode, as 755 or u=rwX,go=rX are")
    return text


def changed(text: str, mode: int) -> int:
    """The permissions of a file that had `mode` (with its type); those it had if nothing is said."""
    found = stat.S_IMODE(mode)
    if re.fullmatch(r"[0-7]{1,4}", text):
        return int(text, 8)
    for clause in filter(None, text.split(",")):
        match = _CLAUSE.fullmatch(clause)
        assert match is not None, text  # `check` was asked
        who = match[1].replace("a", "ugo") or "ugo"
        for operator, rights in _CHANGE.findall(match[2]):
            found = _change(found, who, operator, rights, folder=stat.S_ISDIR(mode))
    return found


def _change(found: int, who: str, operator: str, rights: str, *, folder: bool) -> int:
    bits = mask = 0
    for each in set(who):
        shift = _SHIFTS[each]
        mask |= 7 << shift
        if rights in _SHIFTS:
            bits |= (found >> _SHIFTS[rights] & 7) << shift
            continue
        for right in rights:
            if right in _BITS:
                bits |= _BITS[right] << shift
            elif right == "X" and (folder or found & 0o111):
                bits |= 1 << shift
            elif right == "s":
                bits |= {"u": stat.S_ISUID, "g": stat.S_ISGID}.get(each, 0)
            elif right == "t":
                bits |= stat.S_ISVTX
    if operator == "+":
        return found | bits
    if operator == "-":
        return found & ~bits
    return found & ~mask | bits
