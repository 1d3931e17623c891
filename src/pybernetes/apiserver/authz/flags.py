"""The flags that say who decides, with upstream's names, defaults and complaints."""

from __future__ import annotations

import argparse

from pybernetes.flags import file, seconds, words

MODES = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
_WEBHOOK_FLAGS = (
    "authorization_webhook_config_file",
    "authorization_webhook_version",
    "authorization_webhook_cache_authorized_ttl",
    "authorization_webhook_cache_unauthorized_ttl",
)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of authorization; `check_flags` sets what was left out."""
    add = parser.add_argument
    add("--authorization-mode", type=words, action="extend", help=f"who decides, in order: {','.join(MODES)}")
    add("--authorization-config", type=file, help="an AuthorizationConfiguration, instead of the other flags")
    add("--authorization-policy-file", type=file, help="policy of ABAC: one JSON object a line")
    add("--authorization-webhook-config-file", type=file, help="whom to ask, as a kubeconfig")
    add("--authorization-webhook-version", choices=("v1", "v1beta1"), help="of the SubjectAccessReviews (v1beta1)")
    add("--authorization-webhook-cache-authorized-ttl", type=seconds, help="how long a yes is kept (5m)")
    add("--authorization-webhook-cache-unauthorized-ttl", type=seconds, help="how long a no is kept (30s)")


def check_flags(options: argparse.Namespace) -> list[str]:
    """Errors in the combination of flags; fills in the defaults."""
    problems: list[str] = []
    modes = options.authorization_mode
    if options.authorization_config:
        given = [name for name in _WEBHOOK_FLAGS if getattr(options, name) is not None]
        if modes is not None or given:
            problems.append(
                "--authorization-config can not be specified when --authorization-mode or "
                "--authorization-webhook-* flags are defined"
            )
        modes = []
    elif modes is None:
        modes = ["AlwaysAllow"]
    elif not modes:
        problems.append("at least one authorization-mode must be passed")
    options.authorization_mode = modes
    for mode in modes:
        if mode not in MODES:
            problems.append(f'authorization-mode "{mode}" is not a valid mode')
    if len(set(modes)) != len(modes):
        problems.append(f"authorization-mode {modes} has mode specified more than once")
    policy, webhook = options.authorization_policy_file, options.authorization_webhook_config_file
    if ("ABAC" in modes) and not policy:
        problems.append("authorization-mode ABAC's authorization policy file not passed")
    if policy and "ABAC" not in modes:
        problems.append("cannot specify --authorization-policy-file without mode ABAC")
    if ("Webhook" in modes) and not webhook:
        problems.append("authorization-mode Webhook's authorization config file not passed")
    if webhook and "Webhook" not in modes:
        problems.append("cannot specify --authorization-webhook-config-file without mode Webhook")
    for name, default in zip(_WEBHOOK_FLAGS[1:], ("v1beta1", 300.0, 30.0), strict=True):
        if getattr(options, name) is None:
            setattr(options, name, default)
    return problems
