"""NetworkPolicy and ClusterNetworkPolicy on a node: which connections pods may make and accept.

`facts`     what policies need to know of pods, and what a NetworkPolicy says (pure)
`cluster_facts`    what a ClusterNetworkPolicy says (pure)
`cluster_policies` follows ClusterNetworkPolicies where the cluster has them
`judge`     the verdict on one connection, straight from the policies: for `pyb why connection`, and the tests' oracle
`chains`    policies as nftables rules (pure)
`state`     all policies, pods and namespaces, and the sets and chains that follow from them, incrementally (pure)
`content`   the sets and chains of a table, and what of them changed (pure)
`kernel`    puts them into the kernel's tables
`agent`     follows the cluster; part of `pyb node-network`, or `pyb network-policy` alone (`command`)
"""
