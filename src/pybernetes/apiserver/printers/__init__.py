"""Objects as rows for people: what `kubectl get` shows.

`table.py` makes the Table; `printer.py` is the shape that every kind's printer has; the printers of a group are in the
module (for core: the package) of the group's name, as `PRINTERS`, by kind. A kind without one gets `default.py`.
"""
