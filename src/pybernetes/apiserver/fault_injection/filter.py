"""Applies rules of faults to requests for resources: behind authentication, so that rules may name users, and in front
of priority and fairness, so that a request that is held back takes no seat.

Without rules a request costs one comparison. Watches are wrapped all the same, so that a rule reaches those that run.
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
from typing import Any

import msgspec

from pybernetes.api.errors import BadRequest, MethodNotAllowed, NotFound
from pybernetes.net.http import Answer, Handler, Request, Response

from .rules import MOST_RULES, Asked, Rule, RuleError, parse, unnamed

PATH = "/debug/faults"


class _Active:
    """A rule, and what it has done."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.seen = self.hits = 0

    def happens(self) -> bool:
        """Count one more request that matches; whether it happens to this one."""
        rule = self.rule
        self.seen += 1
        if self.seen <= rule.skip or (rule.times is not None and self.hits >= rule.times):
            return False
        if rule.probability < 1 and random.random() >= rule.probability:
            return False
        self.hits += 1
        return True


class FaultInjection:
    """The filter, and the handler of `/debug/faults`."""

    def __init__(self, next_: Handler) -> None:
        self._next = next_
        self._rules: dict[str, _Active] = {}
        self._changed = asyncio.Event()
        self._watches: dict[int, tuple[Asked, Any]] = {}
        """Running watches: what was asked, and the connection. One leaves when its request ends."""

    def __call__(self, request: Request) -> Answer:
        if not self._rules and request.info.verb != "watch":
            return self._next(request)
        return self._apply(request) if request.info.is_resource else self._next(request)

    async def _apply(self, request: Request) -> Response | None:
        info = request.info
        user = request.user.name if request.user is not None else ""
        asked = Asked(
            user,
            request.headers.get("user-agent", ""),
            info.verb,
            info.group,
            info.resource,
            info.subresource,
            info.namespace,
            info.object_name,
        )
        for active in list(self._rules.values()):
            rule = active.rule
            if rule.action != "end" and rule.matches(asked) and active.happens():
                match rule.action:
                    case "refuse":
                        raise rule.error(asked)
                    case "delay":
                        await asyncio.sleep(rule.seconds)
                    case "drop":
                        raise ConnectionResetError(PATH)
                    case "lose":
                        await self._next(request)
                        raise ConnectionResetError(PATH)
                    case "duplicate":
                        await self._next(copy.copy(request))
                    case "hold":
                        pass  # below, also for those that began before the rule was made
        await self.free(asked)
        if info.verb != "watch":
            return await self._next(request)
        connection = request.connection
        self._watches[id(request)] = asked, connection
        request.connection = _Connection(connection, self, asked)  # type: ignore[assignment]
        try:
            return await self._next(request)
        finally:
            del self._watches[id(request)]

    async def free(self, asked: Asked) -> None:
        """Return when no rule holds such requests."""
        while any(each.rule.action == "hold" and each.rule.matches(asked) for each in self._rules.values()):
            await self._changed.wait()

    def late(self, asked: Asked) -> float:
        """Seconds by which events of a watch are late."""
        rules = (each.rule for each in self._rules.values())
        return sum(rule.seconds for rule in rules if rule.action == "delay" and rule.matches(asked))

    @property
    def active(self) -> bool:
        """Whether there are rules."""
        return bool(self._rules)

    # -- the rules

    async def serve(self, request: Request) -> Response:
        """GET lists the rules with their hits, POST adds, PUT replaces all, DELETE removes all or `?name=`."""
        match request.method:
            case "GET":
                pass
            case "POST":
                self._add(request.body)
            case "PUT":
                before, self._rules = self._rules, {}
                try:
                    self._add(request.body)
                except BadRequest:
                    self._rules = before
                    raise
            case "DELETE":
                self._remove(request.info.query.get("name", ""))
            case _:
                raise MethodNotAllowed
        return Response(msgspec.json.encode({"faults": [self._described(each) for each in self._rules.values()]}))

    def _add(self, body: bytes) -> None:
        try:
            rules = parse(json.loads(body))
        except (RuleError, ValueError) as error:
            raise BadRequest(str(error)) from None
        if len(self._rules) + len(rules) > MOST_RULES:
            raise BadRequest(f"faults: more than {MOST_RULES} rules")
        for rule in rules:
            named = msgspec.structs.replace(rule, name=rule.name or unnamed(self._rules))
            self._rules[named.name] = _Active(named)
            if rule.action == "end":
                self._end(named)
        self._notify()

    def _remove(self, name: str) -> None:
        if name and name not in self._rules:
            raise NotFound("", "faults", name)
        for each in [name] if name else list(self._rules):
            del self._rules[each]
        self._notify()

    def _end(self, rule: Rule) -> None:
        for asked, connection in list(self._watches.values()):
            if rule.matches(asked):
                self._rules[rule.name].hits += 1
                connection.transport.abort()

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @staticmethod
    def _described(active: _Active) -> dict[str, Any]:
        return {**msgspec.to_builtins(active.rule), "seen": active.seen, "hits": active.hits}


class _Connection:
    """A connection whose stream of events can be held back; in all else the connection itself."""

    def __init__(self, connection: Any, faults: FaultInjection, asked: Asked) -> None:
        vars(self).update(_connection=connection, _faults=faults, _asked=asked)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._connection, name, value)

    def stream(self, request: Request) -> Any:
        """The stream of a watch."""
        return _Stream(self._connection.stream(request), self._faults, self._asked)


class _Stream:
    """A stream that waits for rules to be removed before it sends."""

    def __init__(self, stream: Any, faults: FaultInjection, asked: Asked) -> None:
        self._stream, self._faults, self._asked = stream, faults, asked
        self.write, self.end, self.drain = stream.write, stream.end, stream.drain

    async def send(self, data: bytes) -> None:
        """Send a piece when no rule holds it."""
        if self._faults.active:
            if seconds := self._faults.late(self._asked):
                await asyncio.sleep(seconds)
            await self._faults.free(self._asked)
        await self._stream.send(data)
