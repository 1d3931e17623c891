"""Where a webhook is called, whatever it is for: a URL, or a Service of the cluster."""

from __future__ import annotations

from base64 import b64decode
from typing import Final
from urllib.parse import urlsplit

from . import names
from .field import FieldError, Path, invalid, required
from .gocompat.quote import quote

_FORM: Final = "; desired format: https://host[/path]"


def validate_webhook_url(url: str, path: Path, *, force_https: bool = True) -> list[FieldError]:
    """An absolute URL without anything that a request would add."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        _ = parts.port
    except ValueError as error:
        return [required(path, f"url must be a valid URL: parse {quote(url)}: {error}{_FORM}")]
    errors: list[FieldError] = []
    if force_https and parts.scheme != "https":
        errors.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        errors.append(invalid(path, host, f"host must be specified{_FORM}"))
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        errors.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        errors.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        errors.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return errors


def validate_webhook_service(
    name: str | None, namespace: str | None, url_path: str | None, port: int | None, path: Path
) -> list[FieldError]:
    """A Service, a port of it and a path; as upstream's, it calls a missing name a missing namespace and vice versa."""
    errors: list[FieldError] = []
    if not namespace:
        errors.append(required(path.child("name")))
    if not name:
        errors.append(required(path.child("namespace")))
    problems = names.is_port_number(port or 0)
    if problems:
        errors.append(invalid(path.child("port"), port or 0, f"port is not valid: {', '.join(problems)}"))
    if not url_path or url_path == "/":
        return errors
    path = path.child("path")
    if url_path == "//":
        return [*errors, invalid(path, url_path, "segment[0] may not be empty")]
    if not url_path.startswith("/"):
        errors.append(invalid(path, url_path, "must start with a '/'"))
    rest = url_path.encode()[1:].decode(errors="replace")  # Go cuts off a byte, whatever it is a part of
    for index, step in enumerate(rest.removesuffix("/").split("/")):
        if not step:
            errors.append(invalid(path, url_path, f"segment[{index}] may not be empty"))
            continue
        for problem in names.is_dns1123_subdomain(step):
            errors.append(invalid(path, url_path, f"segment[{index}]: {problem}"))
    return errors


def validate_ca_bundle(bundle: str, path: Path) -> list[FieldError]:
    """Certificates in PEM (base64 on the wire), at least one."""
    from cryptography import x509

    data = b64decode(bundle)
    try:
        found = x509.load_pem_x509_certificates(data)
    except ValueError:
        found = []
    if found:
        return []
    detail = "unable to load root certificates: unable to parse bytes as PEM block"
    return [invalid(path, bundle, detail)]
