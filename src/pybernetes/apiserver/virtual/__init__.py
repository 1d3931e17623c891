"""Resources that are answered and forgotten: reviews, bindings, component statuses. One module a group, by plural."""
