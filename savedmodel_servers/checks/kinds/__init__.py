"""The checks of model servers, one module each: ``CHECK`` and ``check``, as in
`compat_matrix.checks.kinds`. Entry points of the group `savedmodel_compat.checks` name them.
"""
