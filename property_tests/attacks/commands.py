"""The commands that are tried on attacks.

Each returns what it tells, and raises what it refuses the model with.
"""

from __future__ import annotations

import io
import json
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from compat_matrix.commands.ops import ops
from reference_impl.errors import SavedModelError
from savedmodel_common.command_line import programs
from savedmodel_common.exit_codes import ExitCode
from savedmodel_common.printable import printable
from savedmodel_compat.cli import main
from savedmodel_tools.verify.rules import all_rules

SOUND = Path(__file__).parents[2] / "fixtures_v1" / "half_plus_two" / "model"
EVALUATED_BYTES = 2**27  # of one tensor, and of all that a function holds at once
OUT = "written"  # beside the model: what the commands that write make, and nothing else


class Refused(Exception):
    """A command line ended otherwise than with 0. ``verdict``: the error it names, or "exit 1"."""

    def __init__(self, verdict: str, said: str) -> None:
        super().__init__(said)
        self.verdict = verdict


def _cli(*words: object) -> None:
    """One command line of `savedmodel-compat`. Raises as :func:`_ends_well`."""
    _ends_well(lambda: main(list(map(str, words))))


def _ends_well(run: Callable[[], None]) -> None:
    """Run a program.

    Raises Refused; AssertionError for a defect: a traceback, an exit code without a named error.
    """
    said = io.StringIO()
    with redirect_stderr(said):
        try:
            run()
        except SystemExit as end:
            code = end.code
    text = said.getvalue()
    assert "Traceback" not in text, text[-1000:]
    assert not text or printable(text) == text, ascii(text)
    if code:
        error = re.search(r"^(\w+Error): ", text, re.MULTILINE)
        assert error or code in (ExitCode.UNEXPECTED, ExitCode.USAGE), (code, text[-1000:])
        raise Refused(error[1] if error else f"exit {code}", text)


def inspect_command(folder: Path) -> str:
    """`savedmodel-compat inspect`; returns the problems, and what acts on the machine at load or
    when.
    """
    from reference_impl.views.model import inspect as look
    from savedmodel_tools.commands.inspect import SECTIONS
    from savedmodel_tools.inspect.tree import show

    info = look(folder)
    json.dumps(info.to_json(), allow_nan=False)
    show(info, SECTIONS, False)
    acting = [effect for graph in info.meta_graphs for effect in graph.effects]
    return "; ".join([*info.problems, *(f"{effect.when}: {effect.does}" for effect in acting)])


def needs_command(folder: Path) -> str:
    """`python -m compat_matrix.commands.ops needs`."""
    _ends_well(lambda: programs.run(ops, ["needs", str(folder)]))
    return ""


def verify_command(folder: Path) -> str:
    """`savedmodel-compat verify`; returns the rules that found something, the worst first."""
    from savedmodel_tools.verify.run import verify
    from savedmodel_tools.verify.sarif import log
    from savedmodel_tools.verify.text import report_lines

    report = verify(folder)
    print(printable("\n".join(report_lines(report, set()))))
    json.dumps(log([report], all_rules(), "0"), allow_nan=False)
    return report.error or " ".join(dict.fromkeys(finding.rule for finding in report.findings))


def load_command(folder: Path) -> str:
    """`reference_impl.load`, for each MetaGraph; returns the warnings."""
    import reference_impl
    from reference_impl.format.container import layout

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tags = layout.read(folder).tag_sets
        for wanted in tags if len(tags) > 1 else [None]:
            reference_impl.load(folder, wanted)
    return "; ".join(
        str(one.message)
        for one in caught
        if one.category not in (DeprecationWarning, FutureWarning)
    )


def diff_command(folder: Path) -> str:
    """`diff` with itself; with another model in both directions, where it gives the same error or
    is different.
    """
    for other in ((folder, SOUND), (SOUND, folder)):
        try:
            _cli("diff", *other)
            raise AssertionError("equal to another model")
        except Refused as refused:
            different = refused
    try:
        _cli("diff", folder, folder)
    except Refused as refused:
        assert different.verdict in (refused.verdict, f"exit {ExitCode.USAGE}"), different
        raise
    assert different.verdict == f"exit {ExitCode.UNEXPECTED}", different
    return ""


def contract_command(folder: Path) -> str:
    """`contract write`."""
    _cli("contract", "write", folder, "--out", folder.parent / OUT)
    return ""


def slim_command(folder: Path) -> str:
    """`edit slim`, with a copy; returns what was dropped."""
    said = io.StringIO()
    with redirect_stdout(said):
        _cli("edit", "slim", folder, "--out", folder.parent / OUT, "--json")
    print(said.getvalue())
    _checked(folder.parent / OUT)
    return "; ".join(
        change for model in json.loads(said.getvalue())["models"] for change in model["changes"]
    )


def signatures_command(folder: Path) -> str:
    """`edit signatures --rename` of the first signature there is, with a copy."""
    found = _first_signature(folder)
    if found is None:
        return ""
    key, tags = found
    out = folder.parent / OUT
    chosen = ["--tags", ",".join(tags)] if tags else []
    _cli("edit", "signatures", "--rename", f"{key}=renamed", *chosen, "--out", out, "--", folder)
    return _checked(out)


def _first_signature(folder: Path) -> tuple[str, list[str]] | None:
    """Return the key and tags of the first signature; None if there is none. For a model that
    cannot be read, any key will do: the verdict of the command is asked for.
    """
    from reference_impl.errors import SavedModelError
    from reference_impl.format.container import layout
    from reference_impl.views.signatures import signatures

    try:
        for graph in layout.read(folder).saved_model.meta_graphs:
            for signature in signatures(graph):
                return signature.key, list(layout.tags_of(graph))
    except SavedModelError:
        return "serving_default", []
    return None


def compat_command(folder: Path) -> str:
    """`compat`, all releases."""
    _cli("compat", folder)
    return ""


def migrate_command(folder: Path) -> str:
    """`migrate --dry-run`."""
    _cli("migrate", "--dry-run", "--out", folder.parent / OUT, folder)
    return ""


def weights_command(folder: Path) -> str:
    """`weights`, then `weights --out`, which leaves no file behind if it is refused."""
    _cli("weights", folder)
    place = folder.parent / OUT
    place.mkdir()
    try:
        _cli("weights", "--json", "--out", place / "weights.safetensors", folder)
    except Refused:
        place.rmdir()
        raise
    return _checked(place)


def evaluate_command(folder: Path) -> str:
    """`reference_eval`: every signature, for inputs of ones, with limits for small models."""
    import numpy as np

    import reference_eval
    from reference_eval import sizes

    sizes.TENSOR_BYTES = sizes.LIVE_BYTES = EVALUATED_BYTES
    try:
        model = reference_eval.load(folder)
        for key in model.signatures:
            given = {}
            for name, (dtype, shape) in model.signatures[key].inputs.items():
                ones = [max(size, 1) for size in shape or ()]
                given[name] = np.full(ones, 1).astype(dtype)
            model.signatures[key](**given)
    except SavedModelError as error:
        assert printable(str(error)) == str(error), ascii(str(error))
        raise Refused(type(error).__name__, str(error)) from None
    return ""


def _checked(written: Path) -> str:
    """Check that nothing that was written leads elsewhere."""
    links = [path for path in [written, *written.rglob("*")] if path.is_symlink()]
    assert not links, links
    return ""


COMMANDS: dict[str, Callable[[Path], str]] = {
    "inspect": inspect_command,
    "needs": needs_command,
    "verify": verify_command,
    "diff": diff_command,
    "contract": contract_command,
    "slim": slim_command,
    "signatures": signatures_command,
    "weights": weights_command,
    "compat": compat_command,
    "migrate": migrate_command,
    "evaluate": evaluate_command,
    "load": load_command,
}
WRITING = ("contract", "slim", "signatures", "weights")


def warm() -> None:
    """Run all that need no TensorFlow on a sound model, so that no child has to import what they
    do.
    """
    with tempfile.TemporaryDirectory() as place, redirect_stdout(io.StringIO()):
        for name, command in COMMANDS.items():
            if name != "load":
                model = shutil.copytree(
                    SOUND.parents[1] / "module_functions" / "model", Path(place, name, "model")
                )
                with suppress(Refused):  # `weights` cannot write the strings of the checkpoint
                    command(Path(model))
