"""The variables of expressions in an AuthenticationConfiguration: `claims`, or `user`."""

from __future__ import annotations

from functools import cache
from typing import Any

from pybernetes.api.cel.environment import Environment
from pybernetes.api.cel.escaping import unescape
from pybernetes.api.cel.types import DYN, STRING, list_of, map_of, object_type

from ...user import User


@cache
def claims_environment() -> Environment:
    """For mappings and rules about claims."""
    return Environment({"claims": map_of(STRING, DYN)})


@cache
def user_environment() -> Environment:
    """For rules about users."""
    texts = list_of(STRING)
    fields = {"username": STRING, "uid": STRING, "groups": texts, "extra": map_of(STRING, texts)}
    user = object_type("kubernetes.UserInfo", dict(fields))
    return Environment({"user": user})


class Unescaping(dict[str, Any]):
    """A JSON object in which `a__dot__b` finds `a.b`, too: an expression cannot name it otherwise."""

    def __contains__(self, key: object) -> bool:
        return super().__contains__(self._name(key))

    def __getitem__(self, key: str) -> Any:
        return super().__getitem__(self._name(key))

    def get(self, key: str, default: Any = None) -> Any:
        return super().get(self._name(key), default)

    def _name(self, key: Any) -> Any:
        if super().__contains__(key) or not isinstance(key, str) or "__" not in key:
            return key
        return unescape(key) or key


def claims_value(value: Any) -> Any:
    """A JSON value as expressions see it."""
    if isinstance(value, dict):
        return Unescaping({key: claims_value(each) for key, each in value.items()})
    return [claims_value(each) for each in value] if isinstance(value, list) else value


def user_value(user: User) -> dict[str, Any]:
    """A user as expressions see it."""
    extra = Unescaping({key: list(values) for key, values in user.extra.items()})
    return {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": extra}
