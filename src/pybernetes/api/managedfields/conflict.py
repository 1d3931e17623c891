"""Fields of others that an applied configuration would change, in upstream's words."""

from __future__ import annotations

from ..errors import ApplyConflict
from .entries import Identity
from .fieldset import Set, walk
from .paths import show


class Conflicts(Exception):
    """Raised while applying; `error` is what the client sees."""

    def __init__(self, found: dict[Identity, Set]) -> None:
        super().__init__()
        self.found = found

    def without(self, allowed: Set) -> Conflicts:
        """The conflicts that are left when these fields may be taken."""
        left = {who: fields - allowed for who, fields in self.found.items()}
        return Conflicts({who: fields for who, fields in left.items() if fields})

    def error(self) -> ApplyConflict:
        """The answer, with a cause for each field."""
        causes = []
        lines = []
        for who in sorted(self.found, key=_rank):
            lines.append(f"conflicts with {who}:")
            for path in map(show, walk(self.found[who])):
                causes.append({"reason": "FieldManagerConflict", "message": f"conflict with {who}", "field": path})
                lines.append(f"- {path}")
        if len(causes) == 1:
            message = f"Apply failed with 1 conflict: {causes[0]['message']}: {causes[0]['field']}"
        else:
            message = f"Apply failed with {len(causes)} conflicts: " + "\n".join(lines)
        return ApplyConflict(causes, message)


def _rank(who: Identity) -> tuple[str, str, str, bool, str]:
    """Upstream sorts by the JSON of an entry, in which a subresource comes before the end."""
    return who.manager, who.operation, who.api_version, not who.subresource, who.subresource
