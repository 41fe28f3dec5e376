"""Build the C++ loader for an interpreter's TensorFlow: ``python -m compat_matrix.runtimes.native
[PYTHON]`` prints its path.
"""

from __future__ import annotations

import sys
from pathlib import Path

from compat_matrix.runtimes.native.build import BuildError, build
from compat_matrix.runtimes.runtime import Runtime


def main() -> int:
    """Return exit code 1 when there is no binary and none can be made."""
    python = Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else Path(sys.executable)
    try:
        print(build(Runtime(str(python), python, None), lambda text: print(text, file=sys.stderr)))
    except BuildError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
