"""The output formats of `-o`: one a file, each a function or class that turns objects into text."""
