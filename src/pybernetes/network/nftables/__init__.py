"""nftables by netlink: tables, chains, rules, sets and maps, changed in atomic batches.

datatypes     the types of set keys and map values, as `nft` names them
expressions   what a rule is made of (pure)
objects       tables, chains, rules, sets and elements as messages, and read back (pure)
batch         changes that the kernel makes all at once, or not at all (pure)
client        the socket: commits batches, lists objects, watches the changes of others
errors        the kernel's refusals, naming the object that it refused

The numbers are the kernel's (`linux/netfilter/nf_tables.h`). No `nft` program is needed; `nft list ruleset` shows what
is made here. Imports nothing heavy: network plugins start a process for each call.
"""
