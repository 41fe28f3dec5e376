"""The commands of this package, one module each. `pyproject.toml` names them as entry points; the
program `savedmodel-compat` finds them there. A command parses options and prints.
"""
