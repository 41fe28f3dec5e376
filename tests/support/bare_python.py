"""A Python that has everything but TensorFlow: a virtual environment of links to what the tests run
in.
"""

import sysconfig
import venv
from pathlib import Path

HIDDEN = ("tensorflow", "keras", "tf_keras")


def without_tensorflow(folder):
    """The interpreter of a new environment in ``folder``."""
    venv.create(folder, symlinks=True, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in {sysconfig.get_paths()[kind] for kind in ("purelib", "platlib")}:
        for item in Path(name).iterdir():
            if not item.name.startswith(HIDDEN) and not (site / item.name).exists():
                (site / item.name).symlink_to(item)
    return folder / "bin" / "python"
