"""Authentication: one method a module; `setup` builds the server's authenticators from flags, `union` combines them."""
