"""The checks: one module each, with ``CHECK``, what a plan knows of it, and ``check``, which asks and compares.

`compat_matrix.checks.table` finds them; adding a check means adding a module.
"""
