"""Tensor files whose members are not compressed, for workers with the capability ``stored``.

Python 3.6 syntax.
"""

import os
import zipfile


def rewrite(source, target):
    """Write the members of ``source`` to ``target`` as they are, without compression; the two may
    be one.
    """
    temporary = "{}.{}.tmp".format(target, os.getpid())
    with zipfile.ZipFile(source) as given:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED) as plain:
            for name in given.namelist():
                plain.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), given.read(name))
    os.replace(temporary, target)
