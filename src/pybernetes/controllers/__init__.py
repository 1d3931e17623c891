"""The loops that turn what is asked for into what is: one module a controller, named as upstream names it.

`base` is what all of them share, `common/` what several do, `manager` knows and runs them, `command` is
`pyb controller-manager`.
"""
