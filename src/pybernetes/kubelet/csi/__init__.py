"""Volumes of CSI drivers on the node.

`drivers` (drivers that have registered), `csi_node` (the CSINode object and what drivers say about the Node), `source`
(pure: what a driver is asked for), `attachments` (waits for the controller that attaches), `volume_data` (what is on
disk), `volumes` (stages, publishes, and undoes both), `expansion`.
"""
