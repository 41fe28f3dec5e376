"""Somebody's export under check: requests, all consumers that are here, and the files themselves, as cells like everywhere else.

``savedmodel-compat check`` and the pytest fixture ``savedmodel_compat`` are two doors to one :class:`~.session.Session`.
``options`` what is asked of whom; ``questions`` requests as people write them; ``recording`` answers where none are given;
``artifact`` all that as an artifact; ``still`` the checks that run nothing; ``session`` plans and runs; ``report`` tells.
"""
