"""Credentials that must be obtained: exec plugins (v1 and v1beta1) and the OIDC auth-provider with its refresh."""

from __future__ import annotations

import os
import time

from pybernetes.kubectl import data
from pybernetes.kubectl.errors import CLIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from pybernetes.kubectl.restconfig import RestConfig

_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


def authorize(config: RestConfig, refresh: bool = False) -> str:
    """The Authorization header; a plugin's certificates are put into the config."""
    if config.exec_plugin:
        return _exec(config, config.exec_plugin, refresh)
    provider = config.auth_provider or {}
    if provider.get("name") == "oidc":
        return f"Bearer {_oidc(config, provider.get('config') or {})}"
    if provider.get("name") in ("gcp", "azure"):
        name = provider["name"]
        hint = {"gcp": "gke-gcloud-auth-plugin", "azure": "https://github.com/Azure/kubelogin"}[name]
        raise CLIError(
            f"The {name} auth plugin has been removed.\n"
            f'Please use the "{hint}" kubectl/client-go credential plugin instead.'
        )
    raise CLIError(f'no Auth Provider found for name "{provider.get("name", "")}"')


def _exec(config: RestConfig, plugin: dict[str, Any], refresh: bool) -> str:
    import subprocess
    import sys

    version = plugin.get("apiVersion") or ""
    if version not in _VERSIONS:
        raise CLIError(f'exec plugin: invalid apiVersion "{version}"')
    command = plugin.get("command") or ""
    if not command:
        raise CLIError(f"command must be specified for {config.user_name} to use exec authentication plugin")
    mode = plugin.get("interactiveMode") or ("IfAvailable" if version.endswith("beta1") else "")
    if mode not in ("Never", "IfAvailable", "Always"):
        what = "must be specified" if not mode else f'"{mode}" is invalid'
        raise CLIError(f"interactiveMode {what} for {config.user_name} to use exec authentication plugin")
    terminal = sys.stdin.isatty()
    problem = "" if terminal else "standard input is not a terminal"
    if config.stdin_used:
        terminal, problem = False, "standard input is unavailable: used by stdin resource manifest reader"
    if mode == "Always" and problem:
        raise CLIError(f"getting credentials: exec plugin cannot support interactive mode: {problem}")
    info: dict[str, Any] = {
        "kind": "ExecCredential",
        "apiVersion": version,
        "spec": {"interactive": terminal and mode != "Never"},
    }
    if plugin.get("provideClusterInfo"):
        info["spec"]["cluster"] = _cluster_info(config)
    environment = dict(os.environ)
    environment.update({each["name"]: str(each.get("value", "")) for each in plugin.get("env") or ()})
    environment["KUBERNETES_EXEC_INFO"] = data.dumps(info, sort=False)
    if os.sep in command and not os.path.isabs(command) and config.user_origin:
        command = os.path.join(os.path.dirname(os.path.abspath(config.user_origin)), command)
    if "pybernetes.kubectl.kuberc" in sys.modules:
        from shutil import which

        from pybernetes.kubectl import kuberc

        kuberc.check_plugin(command, which(command) or command)
    try:
        done = subprocess.run(
            [command, *map(str, plugin.get("args") or ())],
            env=environment,
            stdin=None if info["spec"]["interactive"] else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            check=False,
        )
    except FileNotFoundError:
        hint = f"\n\n{plugin['installHint']}" if plugin.get("installHint") else ""
        raise CLIError(
            f"getting credentials: exec: executable {plugin['command']} not found\n\nIt looks like you are trying to"
            f" use a client-go credential plugin that is not installed.{hint}"
        ) from None
    except OSError as error:
        raise CLIError(f"getting credentials: exec: {(error.strerror or str(error)).lower()}") from None
    if done.returncode:
        raise CLIError(f"getting credentials: exec: executable {command} failed with exit code {done.returncode}")
    return _credential(config, done.stdout, version)


def _credential(config: RestConfig, output: bytes, version: str) -> str:
    from pybernetes.kubectl.manifests import not_an_object, parse_yaml

    try:
        answer = data.loads(output) if output.lstrip()[:1] == b"{" else parse_yaml(output)
    except ValueError as error:
        raise CLIError(
            f"getting credentials: decoding stdout: couldn't get version/kind; json parse error: {error}"
        ) from None
    if not isinstance(answer, dict):
        raise CLIError(f"getting credentials: decoding stdout: {not_an_object(answer)}")
    if answer.get("apiVersion") != version:
        given = answer.get("apiVersion", "")
        raise CLIError(
            f"getting credentials: exec plugin is configured to use API version {version},"
            f" plugin returned version {given}"
        )
    status = answer.get("status")
    if not status:
        raise CLIError("getting credentials: exec plugin didn't return a status field")
    token, certificate, key = (status.get(name) or "" for name in ("token", "clientCertificateData", "clientKeyData"))
    if not token and not (certificate and key):
        if certificate or key:
            raise CLIError("getting credentials: exec plugin returned only certificate or key, not both")
        raise CLIError("getting credentials: exec plugin didn't return a token or cert/key pair")
    if certificate:
        config.cert_data, config.key_data = certificate.encode(), key.encode()
    return f"Bearer {token}" if token else ""


def _cluster_info(config: RestConfig) -> dict[str, Any]:
    from binascii import b2a_base64

    ca = config.ca_data
    if not ca and config.ca_file:
        with open(config.ca_file, "rb") as file:
            ca = file.read()
    info: dict[str, Any] = {"server": config.server}
    if config.tls_server_name:
        info["tls-server-name"] = config.tls_server_name
    if config.insecure:
        info["insecure-skip-tls-verify"] = True
    if ca:
        info["certificate-authority-data"] = b2a_base64(ca, newline=False).decode()
    if config.proxy_url:
        info["proxy-url"] = config.proxy_url
    for extension in config.cluster_config.get("extensions") or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info


def _oidc(config: RestConfig, settings: dict[str, Any]) -> str:
    """An ID token that has not expired; the refreshed one is written back to the kubeconfig."""
    token = str(settings.get("id-token") or "")
    if token and _expiry(token) > time.time() + 10:
        return token
    if not settings.get("idp-issuer-url"):
        raise CLIError("Must provide idp-issuer-url")
    if not settings.get("client-id"):
        raise CLIError("Must provide client-id")
    if not settings.get("refresh-token"):
        raise CLIError("No valid id-token, and cannot refresh without refresh-token")
    import urllib.error
    import urllib.parse
    import urllib.request

    context = _issuer_context(settings)
    issuer = str(settings["idp-issuer-url"]).rstrip("/")
    form = {
        "grant_type": "refresh_token",
        "refresh_token": settings["refresh-token"],
        "client_id": settings["client-id"],
        "client_secret": settings.get("client-secret") or "",
    }
    try:
        with urllib.request.urlopen(f"{issuer}/.well-known/openid-configuration", context=context) as answer:
            endpoint = data.loads(answer.read())["token_endpoint"]
        body = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(urllib.request.Request(endpoint, data=body), context=context) as answer:
            tokens = data.loads(answer.read())
    except (OSError, ValueError, KeyError, urllib.error.URLError) as error:
        raise CLIError(f"failed to refresh token: {error}") from None
    fresh = str(tokens.get("id_token") or "")
    if not fresh:
        raise CLIError("token response did not contain an id_token")
    settings["id-token"] = fresh
    if tokens.get("refresh_token"):
        settings["refresh-token"] = tokens["refresh_token"]
    _persist(config, settings)
    return fresh


def _issuer_context(settings: dict[str, Any]) -> Any:
    import ssl

    from pybernetes.kubectl.restconfig import decode

    authority = settings.get("idp-certificate-authority-data")
    if authority:
        return ssl.create_default_context(cadata=decode(authority).decode())
    return ssl.create_default_context(cafile=settings.get("idp-certificate-authority") or None)


def _expiry(token: str) -> float:
    from base64 import urlsafe_b64decode

    try:
        payload = token.split(".")[1]
        return float(data.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["exp"])
    except (IndexError, ValueError, KeyError, TypeError):
        return 0.0


def _persist(config: RestConfig, settings: dict[str, Any]) -> None:
    from pybernetes.kubectl import kubeconfig_edit

    if config.user_origin:
        kubeconfig_edit.change_user(
            config.user_origin, config.user_name, {"auth-provider": {"name": "oidc", "config": settings}}
        )
