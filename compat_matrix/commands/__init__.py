"""One module per subcommand of ``savedmodel-compat``: `savedmodel_compat.cli` finds it here, and
imports it when it is asked for.

The command of ``plugin_check.py`` is its ``plugin_check``, called ``plugin-check``. The first line
of a module is its line in ``savedmodel-compat --help``.
"""
