"""The checks, one module each, with the declaration ``CHECK`` and the function ``check``, which
asks and compares.

`compat_matrix.checks.table` finds them; adding a check means adding a module.
"""
