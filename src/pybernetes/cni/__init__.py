"""The Container Network Interface: how a pod's network namespace gets its interfaces, addresses and ports.

`libcni` is the runtime's side: config lists from a folder, plugins called in turn, results remembered. `plugins/` has
bridge, host-local, loopback, portmap and noop of our own, which do the same things to links, address files and rules as
Debian's binaries: what one added the other checks and deletes. They run inside the caller's process, or as executables
(`pyb cni install FOLDER`), so that containerd can call them as well.

The standard library alone is used here, with a small netlink client of our own (`netlink/`): pyroute2 takes 190 ms and
15 MB to import, more than everything a plugin does, and an executable plugin starts anew for every pod.
"""
