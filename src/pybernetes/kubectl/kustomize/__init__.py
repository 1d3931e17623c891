"""Builds kustomizations as kustomize v5.8 does: from a folder with a kustomization file to one stream of YAML.

- `target` goes through a kustomization: resources, generators, components, transformers, validators.
- `settings` reads the kustomization file and refuses what it may not hold; `files` reads everything else.
- `resources` has the objects of a build with the names they had before; `nodes` reads their YAML.
- `generators`, `transformers`, `patches`, `replacements` make and change objects; `plugins` configures the same steps
  from files.
- `field_specs` is the table of the fields that each step changes, `field_paths` finds them in an object.
- `references` follows new names to the fields that refer to them, `variables` replaces $(NAME); `order` sorts.

Not supported, and an error: helm charts, and generators or transformers that are programs.
"""

from __future__ import annotations


def build(folder: str, restricted: bool = True) -> bytes:
    """The YAML of a kustomization; `restricted`: it may read no files outside its folder. Raises CLIError."""
    from pybernetes.kubectl.kustomize.target import run
    from pybernetes.kubectl.printers import yaml_text

    return "---\n".join(yaml_text.dumps(obj) for obj in run(folder, restricted)).encode()
