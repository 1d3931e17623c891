"""kubectl: the command line client of a Kubernetes cluster.

Table of contents:

- `entry.py`        the file that `./kubectl` runs: `python -I -S`, third-party packages on demand
- `main.py`         finds the command, parses its flags, runs it, turns errors into kubectl's words and exit codes
- `command.py`      `Command`: the one shape of every command; `flags.py`: flags with pflag's syntax and messages
- `context.py`      `Context`: what a command is given: output streams, client, mapper, namespace, builder
- `kubeconfig.py`   loading and merging of kubeconfig files; `restconfig.py`: server and credentials of it
- `credentials.py`  exec plugins, OIDC refresh, token files
- `transport.py`    HTTP/1.1 over a bare socket and `_ssl`; `client.py`: requests, Status errors, lists, watches
- `peer_certificate.py` why a server's certificate is not accepted
- `discovery.py`    API discovery and its cache under ~/.kube/cache; `mapper.py`: resource names to REST mappings
- `manifests.py`    documents of files, folders, stdin, URLs; `builder.py`: arguments and files to `Info`s
- `kustomize.py`    builds kustomizations; `describing/`: one module for each family of kinds
- `applyset.py`     the set of objects of `apply --applyset`; `debug_profiles.py`: the profiles of `debug`
- `printers/`       table, json, yaml, name, jsonpath, go-template, custom-columns; `printing.py` chooses one by `-o`
- `commands/`       one command a file; `commands/__init__.py` is the table of their names

A command is a module in `commands/` with `COMMAND = Command(...)`, named in the table of `commands/__init__.py`.
Only the module of the command that runs is imported, and the modules on the way of `get` avoid `re`, `typing`,
`dataclasses`, `json`, `ssl` and `socket`, because each costs milliseconds at the start of every invocation.
"""
