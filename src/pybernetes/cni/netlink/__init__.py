"""Links, addresses and routes of the kernel, on the sockets of `pybernetes.net.netlink`.

`rtnl.py` has the few operations plugins need, `namespace.py` is how something is done inside another network
namespace. The numbers are the kernel's (`linux/rtnetlink.h`, `if_link.h`).
"""
