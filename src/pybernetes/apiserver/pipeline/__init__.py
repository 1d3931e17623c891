"""Shared by the verbs: one module a stage, in the order of a request.

- `options`: query parameters and option bodies
- `context`: the `Context` that every stage gets
- `decode`, `default`: from the body to an object of the kind, with its defaults and managed fields
- `metadata`: what the server sets, and what has to agree with the path
- `admission`: what mutating and validating admission are asked about; the plugins are in `admission/`
- `validation`: the strategy of the resource prepares and judges the object
- `persist`: replace, or remove with the last finalizer; reservations are kept or given back
- `respond`: one object, a list, a Table, a Status in the form that was negotiated

`creation` and `change` put these in order for a new and for a changed object. Beside them: `create_permission` (an
update that creates), `freshness` and `unreadable` (reads), `watch_websocket`, `server_writes` (the server's own).
"""
