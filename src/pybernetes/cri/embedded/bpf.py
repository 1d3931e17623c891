"""Filters of system calls as programs of the kernel's packet filter (BPF): pure.

A program finds the processor's mode first, then the call's number by halving: all numbers between two that differ share
an answer, so a list of four hundred calls becomes some eight comparisons for each call. Then arguments are looked at.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

KILL_PROCESS, KILL_THREAD, TRAP, ERRNO = 0x80000000, 0, 0x00030000, 0x00050000
TRACE, LOG, ALLOW = 0x7FF00000, 0x7FFC0000, 0x7FFF0000
_LOAD, _JUMP, _EQUAL, _GREATER, _AT_LEAST, _AND, _RETURN = 0x20, 0x05, 0x15, 0x25, 0x35, 0x54, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16  # places in what a program is given, `struct seccomp_data`
LONGEST = 4096
"""Instructions of a program: the kernel's BPF_MAXINSNS."""
_LAST = 0xFFFFFFFF

Instruction = tuple[int, int, int, int]


class Condition(NamedTuple):
    """A condition on an argument, by libseccomp's names; only MASKED_EQ has a mask (`value`) and a second value."""

    argument: int
    operator: str
    value: int
    second: int = 0


class Rule(NamedTuple):
    """An answer, if all conditions hold."""

    conditions: tuple[Condition, ...]
    answer: int


class Table(NamedTuple):
    """The calls of one mode of the processor."""

    architecture: int
    """Its AUDIT_ARCH number."""
    rules: Mapping[int, Sequence[Rule]]
    """By the call's number; the first that holds counts."""
    default: int
    beyond: int
    """The first unknown number, and the action for it and those after it."""
    unknown: int
    """The answer to those."""


class TooLong(ValueError):
    """More rules than a program can have."""


def program(tables: Sequence[Table]) -> bytes:
    """The program; a mode of the processor that has no table ends the process."""
    code: list[Instruction] = [_return(KILL_PROCESS)]
    for table in reversed(tables):
        body = [(_LOAD, 0, 0, _NUMBER), *_numbers(table)]
        code = [*_unless_equal(table.architecture, len(body)), *body, *code]
    code = [(_LOAD, 0, 0, _ARCHITECTURE), *code]
    if len(code) > LONGEST:
        raise TooLong(f"the filter has {len(code)} instructions, and the kernel takes {LONGEST}")
    return b"".join(struct.pack("<HBBI", *each) for each in code)


def _return(answer: int) -> Instruction:
    return _RETURN, 0, 0, answer


def _unless_equal(value: int, distance: int) -> list[Instruction]:
    """Goes on if the accumulator is `value`, else jumps; only the unconditional jump reaches further than 255."""
    return [(_EQUAL, 1, 0, value), (_JUMP, 0, 0, distance)]


def _numbers(table: Table) -> list[Instruction]:
    """The code for a call's number."""
    starts: list[tuple[int, tuple[Rule, ...]]] = []
    default = (Rule((), table.default),)
    at = 0
    for number in sorted(table.rules):
        if number >= table.beyond:
            continue
        if number > at:
            starts.append((at, default))
        starts.append((number, (*table.rules[number], *default)))
        at = number + 1
    if at < table.beyond:
        starts.append((at, default))
    starts.append((table.beyond, (Rule((), table.unknown),)))
    merged = [
        each for index, each in enumerate(starts) if index == 0 or _short(starts[index - 1][1]) != _short(each[1])
    ]
    return _halves([(start, _short(rules)) for start, rules in merged])


def _short(rules: Sequence[Rule]) -> tuple[Rule, ...]:
    """Without what comes after a rule that always holds."""
    for index, rule in enumerate(rules):
        if not rule.conditions:
            return tuple(rules[: index + 1])
    return tuple(rules)


def _halves(parts: Sequence[tuple[int, tuple[Rule, ...]]]) -> list[Instruction]:
    if len(parts) == 1:
        return [each for rule in parts[0][1] for each in _rule(rule)]
    middle = len(parts) // 2
    low, high = _halves(parts[:middle]), _halves(parts[middle:])
    if len(low) < 256:
        return [(_AT_LEAST, len(low), 0, parts[middle][0]), *low, *high]
    return [(_AT_LEAST, 0, 1, parts[middle][0]), (_JUMP, 0, 0, len(low)), *low, *high]


def _rule(rule: Rule) -> list[Instruction]:
    """Returns the answer if all conditions hold, else goes on behind."""
    code: list[Instruction] = [_return(rule.answer)]
    for condition in reversed(rule.conditions):
        code = [*_condition(condition, len(code)), *code]
    return code


def _condition(condition: Condition, behind: int) -> list[Instruction]:
    """Goes on if it holds, else jumps over the next `behind` instructions. Arguments are two halves of 32 bits."""
    place = _ARGUMENTS + 8 * condition.argument
    load_low, load_high = (_LOAD, 0, 0, place), (_LOAD, 0, 0, place + 4)
    low, high = condition.value & _LAST, condition.value >> 32
    operator = condition.operator
    if operator == "MASKED_EQ":
        wanted_low, wanted_high = condition.second & _LAST, condition.second >> 32
        return [
            load_high,
            (_AND, 0, 0, high),
            (_EQUAL, 0, behind + 3, wanted_high),
            load_low,
            (_AND, 0, 0, low),
            (_EQUAL, 0, behind, wanted_low),
        ]
    if operator == "EQ":
        return [load_high, (_EQUAL, 0, behind + 2, high), load_low, (_EQUAL, 0, behind, low)]
    if operator == "NE":
        return [load_high, (_EQUAL, 0, 2, high), load_low, (_EQUAL, behind, 0, low)]
    # Equal upper halves leave it to the lower ones; otherwise the upper ones decide.
    below = {"GT": (_GREATER, True), "GE": (_AT_LEAST, True), "LT": (_AT_LEAST, False), "LE": (_GREATER, False)}
    compare, more = below[operator]
    last = (compare, 0, behind, low) if more else (compare, behind, 0, low)
    if more:
        return [load_high, (_GREATER, 3, 0, high), (_EQUAL, 0, behind + 2, high), load_low, last]
    return [load_high, (_GREATER, behind + 3, 0, high), (_EQUAL, 0, 2, high), load_low, last]
