"""The check of an export: its requests, all installed consumers, and its files, as cells of a plan.

``savedmodel-compat check`` and the pytest fixture ``savedmodel_compat`` both use
:class:`~.session.Session`. ``options`` holds the options; ``still`` has the checks that run
nothing; ``session`` plans and runs; ``report`` presents the results. :mod:`compat_matrix.requests`
finds and records requests.
"""
