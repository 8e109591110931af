"""The kernel language: lowers a Python function, or its source text, to a typed program."""
