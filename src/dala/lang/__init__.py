"""The kernel language: a Python function, or its text, becomes a checked and typed program."""
