"""Properties of kubeconfig entries by their dotted names (`clusters.one.server`), for `config set` and `unset`."""

from __future__ import annotations

from pybernetes.kubectl.errors import CLIError
from pybernetes.kubectl.flags import boolean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pybernetes.kubectl.kubeconfig_edit import Editor

_SINGULAR = {"clusters": "cluster", "contexts": "context", "users": "user"}
_FIELDS = {
    "clusters": frozenset(
        (
            "server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority",
            "certificate-authority-data", "proxy-url", "disable-compression", "extensions",
        )
    ),
    "contexts": frozenset(("cluster", "user", "namespace", "extensions")),
    "users": frozenset(
        (
            "client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile",
            "as", "as-uid", "as-groups", "as-user-extra", "username", "password", "auth-provider", "exec", "extensions",
        )
    ),
}  # fmt: skip


def change(editor: Editor, name: str, value: str | None) -> None:
    """Sets a property, or unsets it where the value is None. Raises CLIError."""
    steps = name.split(".")
    if steps[0] == "current-context":
        editor.set_current_context(value or "")
        return
    if steps[0] not in _SINGULAR:
        raise CLIError(f"unable to parse {name} after [] at api.Config")
    if len(steps) < 2:
        raise CLIError(f"unable to parse one or more field values of {name}")
    section = steps[0]
    entry, field = _entry(editor, section, steps[1:])
    if not field:
        if value is not None:
            raise CLIError("can't set a map to a value")
        editor.remove(section, entry)  # one that is not there is unset already
        return
    if field.partition(".")[0] not in _FIELDS[section]:
        raise CLIError(f"unable to parse {field} after [{section} {entry}] at api.{_SINGULAR[section].capitalize()}")
    found = editor.find(section, entry)
    if found is None and value is None:
        raise CLIError(f"current map key `{entry}` is invalid")
    content = dict((found[1].get(_SINGULAR[section]) or {}) if found else {})
    if value is None:
        content.pop(field, None)
        if section == "clusters" and field == "server":
            content[field] = ""
    elif field.endswith("-data"):
        from binascii import a2b_base64, b2a_base64

        try:
            content[field] = b2a_base64(a2b_base64(value.encode(), strict_mode=False), newline=False).decode()
        except ValueError as error:
            raise CLIError(f"error decoding input value: illegal base64 data: {error}") from None
    elif field in ("insecure-skip-tls-verify", "disable-compression"):
        try:
            content[field] = boolean(value)
        except ValueError as error:
            raise CLIError(str(error)) from None
    else:
        content[field] = value
    editor.put(section, entry, content)


def _entry(editor: Editor, section: str, steps: list[str]) -> tuple[str, str]:
    """Names may have dots: the longest one that exists, else all but the last word."""
    for count in range(len(steps), 0, -1):
        name = ".".join(steps[:count])
        if editor.find(section, name) is not None:
            return name, ".".join(steps[count:])
    return ".".join(steps[:-1]), steps[-1] if len(steps) > 1 else ""
