"""The command of this package, `kit`. `pyproject.toml` names them as entry points; the
program `savedmodel-compat` finds them there. A command parses options and prints.
"""
