"""`kubectl set`: image, env, resources, selector, serviceaccount and subject of objects."""

from __future__ import annotations

from pybernetes.kubectl.command import Command

COMMAND = Command(
    "set SUBCOMMAND",
    "Set specific features on objects",
    children={
        "image": "set_image",
        "env": "set_env",
        "resources": "set_resources",
        "selector": "set_selector",
        "serviceaccount": "set_serviceaccount",
        "subject": "set_subject",
    },
)
