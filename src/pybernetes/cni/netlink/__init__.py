"""Links, addresses and routes of the kernel, over its netlink socket.

`wire.py` is the form of messages (pure), `rtnl.py` the socket and the few operations plugins need, `namespace.py` how
something is done inside another network namespace. The numbers are the kernel's (`linux/rtnetlink.h`, `if_link.h`).
"""
