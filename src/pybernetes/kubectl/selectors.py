"""Label selectors on the client: for files and for objects that are already here."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError


def matches(selector: str, labels: dict[str, str]) -> bool:
    """Whether labels satisfy a selector. Raises CLIError for one that cannot be parsed."""
    from pybernetes.api.labels import SelectorError, parse

    try:
        return bool(parse(selector).matches(labels))
    except SelectorError as error:
        raise CLIError(str(error)) from None
