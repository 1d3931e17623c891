"""`pyb objectfs COMMAND`: one module a command, each with `add_flags(parser)` and `run(arguments) -> int`."""
