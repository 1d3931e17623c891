"""DaemonSets: one pod on every node that fits.

nodes        which nodes fit, and what a pod for one looks like
plan         which pods to make and delete, and the status
revisions    the history of templates
controller   the loop
"""
