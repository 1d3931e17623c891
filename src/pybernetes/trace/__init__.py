"""Tracing of causes: spans of all components, and the tree that they make.

`context` is the W3C `traceparent` header, `span` what a component did, `recorder` what a component has done lately,
`sampling` what is worth recording, `store` what the API server keeps of it, `tree` how spans become one tree, `text`,
`page` and `otlp` how it is shown. docs/trace.md is the manual.

No object carries a trace. A request's span lists the revisions that it wrote, and a reconcile's span the revisions
that woke it; joining the two, on request, gives the tree.
"""

VARIABLE = "PYBERNETES_TRACE"
"""`1` in the environment of a component: it records. Here, because the supervisor imports nothing heavy."""
