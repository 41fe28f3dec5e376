"""Runs the shell steps of the GitHub workflow in `exporters.md`, as they stand, on the example of
the page. Loads a TensorFlow.

    python -m docs.actions

Needs bash, uv and the network (PyPI), and a TensorFlow beside it for the export that is committed.
The ``uses:`` steps are replaced by a folder with the files of the page and a new virtual
environment. This is not a test, since it takes minutes and gigabytes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from docs import transcripts

DOCS = Path(__file__).parent
GOOD, BAD = "tf.nn.gelu(x @ self.weights, approximate=True)", "tf.nn.gelu(x @ self.weights)"


def steps() -> list[str]:
    """The shell steps of the workflow, in order."""
    (workflow,) = re.findall(r"```yaml\n# \.github/workflows/.*?```", _page(), re.DOTALL)
    return re.findall(r"^ +- run: (.*)$", workflow, re.MULTILINE)


def _page() -> str:
    return (DOCS / "exporters/check_exports.md").read_text(encoding="utf-8")


def repository(folder: Path) -> None:
    """The example of the page as somebody has it in a repository: exporter, test, requirements, one
    committed export.
    """
    for name, text in transcripts.files(_page()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace(BAD, GOOD), encoding="utf-8")
    (folder / "requirements.txt").write_text("pytest\n", encoding="utf-8")
    made = (
        "import numpy as np; from exporter import export; export(np.float32([[0.5], [-0.25]]),"
        " 'exports/scorer')"
    )
    subprocess.run([sys.executable, "-c", made], cwd=folder, check=True, stderr=subprocess.DEVNULL)


def run(folder: Path, environment: Mapping[str, str]) -> list[int]:
    """The statuses of the steps, up to the first that fails."""
    statuses = []
    for step in steps():
        print(f"$ {step}", flush=True)
        statuses.append(
            subprocess.run(
                ["bash", "-e", "-c", step], cwd=folder, env=environment, check=False
            ).returncode
        )
        if statuses[-1]:
            break
    return statuses


def main() -> int:
    folder = Path(tempfile.mkdtemp(prefix="actions-"))
    try:
        subprocess.run(
            ["uv", "build", "--quiet", "--wheel", "--out-dir", folder / "wheels", DOCS.parent],
            check=True,
        )
        subprocess.run([sys.executable, "-m", "venv", folder / "python"], check=True)
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PYTHON", "PYTEST", "VIRTUAL_ENV", "COMPAT_"))
        }
        path = os.pathsep.join([str(folder / "python" / "bin"), os.environ["PATH"]])
        environment = {**kept, "PATH": path, "CI": "true", "PIP_FIND_LINKS": str(folder / "wheels")}
        checkout = folder / "repository"
        checkout.mkdir()
        repository(checkout)
        good = run(checkout, environment)
        shutil.rmtree(checkout / "compat", ignore_errors=True)
        exporter = checkout / "exporter.py"
        exporter.write_text(
            exporter.read_text(encoding="utf-8").replace(GOOD, BAD), encoding="utf-8"
        )
        bad = run(checkout, environment)
        left = (
            sorted(path.name for path in (checkout / "compat").iterdir())
            if (checkout / "compat").is_dir()
            else []
        )
        print(
            f"repaired: {good}; as on the page: {bad}, leaves compat/ with"
            f" {', '.join(left) or 'nothing'}"
        )
        return 0 if good == [0] * len(steps()) and bad == [0, 1] and left else 1
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
