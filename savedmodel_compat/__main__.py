"""``python -m savedmodel_compat``: the same program as the console script ``savedmodel-compat``."""

from savedmodel_compat.cli import main

if __name__ == "__main__":
    main()
