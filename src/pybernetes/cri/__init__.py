"""The Container Runtime Interface: its messages (`v1`), a client of a runtime (`remote`), and a server (`service`).

`from pybernetes.cri import v1 as cri` gives `cri.PodSandboxConfig(...)` and `cri.SANDBOX_READY`.
"""
