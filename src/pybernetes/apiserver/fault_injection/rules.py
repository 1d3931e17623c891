"""Rules of faults: whose requests, for what, how often, and what happens to them. Pure.

    faults:
    - name: status-updates-conflict    # to remove it by; a number where it is left out
      action: refuse                   # refuse, delay, drop, lose, duplicate, hold, end
      status: 409                      # of refuse: 400 to 504
      userAgents: ["my-operator*"]     # shell patterns; left out: all
      users: ["system:serviceaccount:kube-system:*"]
      verbs: [update, patch]           # get, list, watch, create, update, patch, delete, deletecollection
      resources: [deployments/status]  # pods, pods/log, deployments.apps, */status
      namespaces: [default]
      names: ["web-*"]
      skip: 2                          # requests that match before the first one that it happens to
      times: 1                         # how often it happens; without a number again and again
      probability: 0.5                 # of the rest

Actions:

    refuse      the answer is `status`, and nothing was done
    delay       the request waits `seconds`; events of a watch come `seconds` late
    drop        the connection ends without an answer, and nothing was done
    lose        the connection ends without an answer, but what was asked for was done
    duplicate   what was asked for is done twice; the answer is the second one
    hold        the request waits until the rule is removed; a watch gets no events until then: a stale cache
    end         the watches that run now end
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

from pybernetes.api import errors

Action = Literal["refuse", "delay", "drop", "lose", "duplicate", "hold", "end"]
MOST_RULES = 1000
LONGEST = 86400.0
"""Seconds of the longest delay."""
_MESSAGE = "refused by a rule of fault injection"


class RuleError(ValueError):
    """A rule that cannot be; the message names the rule and the field."""


class Rule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """A fault and the requests it applies to."""

    action: Action
    name: str = ""
    users: tuple[str, ...] = ()
    user_agents: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    status: int = 503
    seconds: float = 1.0
    skip: int = 0
    times: int | None = None
    probability: float = 1.0

    def matches(self, asked: Asked) -> bool:
        """Whether a request is one of those that the rule is about."""
        return (
            _fits(asked.verb, self.verbs)
            and (not self.resources or any(fnmatchcase(form, each) for each in self.resources for form in asked.forms))
            and _fits(asked.namespace, self.namespaces)
            and _fits(asked.name, self.names)
            and _fits(asked.user, self.users)
            and _fits(asked.user_agent, self.user_agents)
        )

    def error(self, asked: Asked) -> errors.APIError:
        """The answer of `refuse`."""
        group, resource, name = asked.group, asked.resource, asked.name
        match self.status:
            case 400:
                return errors.BadRequest(_MESSAGE)
            case 401:
                return errors.Unauthorized()
            case 403:
                return errors.Forbidden(group, resource, name, _MESSAGE)
            case 404:
                return errors.NotFound(group, resource, name)
            case 409:
                return (
                    errors.AlreadyExists(group, resource, name)
                    if asked.verb == "create"
                    else errors.Conflict(group, resource, name)
                )
            case 410:
                return errors.ResourceExpired(_MESSAGE)
            case 429:
                return errors.TooManyRequests(_MESSAGE)
            case 500:
                return errors.InternalError(_MESSAGE)
            case 504:
                return errors.Timeout(_MESSAGE)
            case _:
                return errors.ServiceUnavailable(_MESSAGE)


class Asked(msgspec.Struct, frozen=True):
    """The attributes of a request that rules match."""

    user: str
    user_agent: str
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str

    @property
    def forms(self) -> tuple[str, ...]:
        """The names of the resource that a rule may use."""
        plain, full = self.resource, f"{self.resource}.{self.group}"
        if self.subresource:
            return f"{plain}/{self.subresource}", f"{full}/{self.subresource}"
        return plain, full


STATUSES = (400, 401, 403, 404, 409, 410, 429, 500, 503, 504)


def parse(content: Any) -> list[Rule]:
    """The rules of a document: `{faults: [...]}`, a list, or one rule. RuleError."""
    if isinstance(content, dict) and "faults" in content:
        if unknown := sorted(set(content) - {"faults"}):
            raise RuleError(f"unknown field {unknown[0]!r} beside faults")
        content = content["faults"]
    if isinstance(content, dict):
        content = [content]
    if not isinstance(content, list):
        raise RuleError("faults: not a list of rules")
    if len(content) > MOST_RULES:
        raise RuleError(f"faults: {len(content)} rules, of {MOST_RULES} at most")
    rules = []
    for number, each in enumerate(content):
        try:
            rule = msgspec.convert(each, Rule)
        except msgspec.ValidationError as error:
            raise RuleError(f"faults[{number}]: {str(error).replace('`', '')}") from None
        rules.append(_checked(rule, number))
    names = [rule.name for rule in rules if rule.name]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise RuleError(f"faults: the name {twice!r} is there twice")
    return rules


def _checked(rule: Rule, number: int) -> Rule:
    where = f"faults[{number}]"
    if rule.status not in STATUSES:
        raise RuleError(f"{where}.status: {rule.status} is none of {', '.join(map(str, STATUSES))}")
    if not 0 <= rule.seconds <= LONGEST:
        raise RuleError(f"{where}.seconds: {rule.seconds:g} is not between 0 and {LONGEST:g}")
    if not 0 <= rule.probability <= 1:
        raise RuleError(f"{where}.probability: {rule.probability:g} is not between 0 and 1")
    if rule.skip < 0 or (rule.times is not None and rule.times < 0):
        raise RuleError(f"{where}: skip and times are not negative")
    return rule


def _fits(value: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatchcase(value, each) for each in patterns)


def unnamed(taken: Iterable[str]) -> str:
    """A name for a rule that has none."""
    used = set(taken)
    return next(name for number in range(len(used) + 1) if (name := f"fault-{number + 1}") not in used)
