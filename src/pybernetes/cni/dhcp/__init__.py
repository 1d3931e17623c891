"""Addresses for pods from a DHCP server: the daemon that keeps leases, and what it speaks.

`message`  DHCP messages (RFC 2131, options of RFC 2132 and 3442), pure
`lease`    one lease of one link: asks, renews, rebinds, releases
`daemon`   `pyb cni dhcp-daemon`: keeps leases for the plugin `dhcp`, which asks it over a socket
"""
