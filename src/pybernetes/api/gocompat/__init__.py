"""Go's forms of values, where clients and messages show them.

- `goencoder`: objects as Go's encoder writes them: which zero values are shown
- `gojson`: JSON as Go's decoder reads it, with its messages
- `goprint`, `quote`: values as `%v`, `%#v` and `%q` print them
- `goform`, `godiff`, `gotypes`: upstream's internal types in messages
- `unstructured`: the messages of the converter behind strategic merge patches
"""
