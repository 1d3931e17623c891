"""Who is it? One way to tell a file; `setup` makes of the flags what a server uses, `union` puts them in a row."""
