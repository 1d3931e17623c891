"""`kubectl describe`: one module for each family of kinds, each a function from an object to text with tabs.

`text.py` aligns the tabs and holds what all share; `table.py` is the table of kinds; a kind without an entry is
described by `generic.py`.
"""
