"""Runs the notebooks in ``examples``, each in an empty folder, and compares or writes what their
cells show.

    python -m docs.notebooks [--check] [NOTEBOOK ...]

A notebook may show only what is the same in each run: no times and no paths outside its folder.
Standard error is not kept, since libraries log there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from docs import transcripts

FOLDER = transcripts.ROOT / "examples"
_VERSION = 4  # of the file format


def notebooks() -> list[Path]:
    """Return the notebooks of the project."""
    return sorted(FOLDER.glob("*.ipynb"))


def needs_tensorflow(notebook: Path) -> bool:
    """Return whether a cell imports TensorFlow."""
    return "import tensorflow" in notebook.read_text(encoding="utf-8")


def run(notebook: Path, folder: Path) -> str:
    """Run a notebook in an empty folder.

    Return its text with what the cells show; equal text where the notebook was right.

    Raises:
      nbclient.exceptions.CellExecutionError: a cell raised an exception.
    """
    import nbformat
    from nbclient import NotebookClient

    read = nbformat.read(notebook, as_version=_VERSION)
    client = NotebookClient(
        read, timeout=None, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    client.execute(env=transcripts.environment(folder))
    for number, cell in enumerate((cell for cell in read.cells if cell.cell_type == "code"), 1):
        cell.execution_count = number
        cell.metadata = {}
        cell.outputs = _outputs(cell.outputs)
    return str(nbformat.writes(read, version=_VERSION)) + "\n"


def _outputs(outputs: list[Any]) -> list[Any]:
    """Return the outputs of a cell in one form: pieces of a stream joined, no numbers of the run,
    no text beside HTML.
    """
    out: list[Any] = []
    for output in outputs:
        if output.get("name") == "stderr":
            continue
        if output.output_type == "stream" and out and out[-1].get("name") == output.name:
            out[-1].text += output.text
            continue
        if "execution_count" in output:
            output.execution_count = None
        if "text/html" in output.get("data", ()):
            del output.data["text/plain"]  # the fields of the result: pages of text
        out.append(output)
    return out


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing, fail where a notebook shows something else",
    )
    parser.add_argument("notebooks", nargs="*", type=Path)
    options = parser.parse_args()
    stale = []
    for notebook in options.notebooks or notebooks():
        with tempfile.TemporaryDirectory() as folder:
            text = run(notebook, Path(folder))
        if text != notebook.read_text(encoding="utf-8"):
            stale.append(notebook.name)
            if not options.check:
                notebook.write_text(text, encoding="utf-8")
    print(f"{'stale' if options.check else 'written'}: {', '.join(stale) or 'none'}")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
