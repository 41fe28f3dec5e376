"""The page of the attacks, made of their docstrings and `property_tests/attacks/verdicts.toml`."""

from __future__ import annotations

import ast
from pathlib import Path

from compat_matrix.cases import title_and_rest
from property_tests.attacks import keras_configurations, special
from savedmodel_common import toml

FOLDER = Path(__file__).parents[1] / "property_tests" / "attacks"
MODULES = (
    "paths",
    "bombs",
    "contradictions",
    "objects",
    "naming",
    "nodes",
    "effects",
    "paths_of_ops",
    "imports",
    "sizes",
    "files",
    "published",
)

HEAD = """# Hostile SavedModels

A SavedModel is a program, and a file from somebody else. Nothing but `load`, and what asks a model (`check`, `migrate`, the
answers of a contract), runs any of it: nothing that it contains makes other commands run code, read outside its directory or
use memory without end. `reference_impl.load` makes its variables and, as every loader of TensorFlow does, **runs its
initialisers**: an initialiser can do whatever an op can, such as writing a file. Load what you trust; look at the rest with
`inspect`, which lists what acts on the machine and when. `load` warns before it runs such a thing; with
`LoadOptions(machine_ops="refuse")` it does not.

Each attack is a generator in `property_tests/attacks/` (`python -m property_tests.attacks NAME` makes one and shows time and
memory). `property_tests/test_attacks.py` checks the answers below in a child process with limits on time and memory, and looks
whether anything outside was read or changed. An answer is *accepted* or the class of the error. Behind the colon is a part of
the problem that `inspect` shows (exit code 1), the op that acts on the machine, the file that the model wrote, or the warning of
`load`; for `verify` the [rules](../zoo/rules.md) that found something.

{attacks} attacks are tried with each of {commands} commands. Those by a pipe, a socket or a link to itself in place of one file
share a line.

"""  # noqa: E501


MORE = """
The commands that compare, edit and plan are held to the same, in processes like those above. `diff` is asked
about the attack and itself, and about another model in both directions; `contract write`, `edit slim` and `edit signatures`
(`--rename` of the first) write beside the model, and leave nothing when they refuse. `weights` lists the weights, and
also writes them to a file. `migrate` only plans. *exit 1* is an answer in
words: a model that cannot be read (`compat`, `migrate`), a part that no release loads (`compat`), a string, which no file of
`weights --out` can hold; 64 is one of wrong usage.
Accepted is what the command has no business with: a contract holds signatures, so no weight is read for it.

"""  # noqa: E501

PUBLISHED = """
## Published attacks

Attacks that somebody has published: CVEs and advisories about altered SavedModels and checkpoints, and files of public hubs.
The list is `property_tests/attacks/published.toml`; each id has a case in the tables above, or a test.

"""  # noqa: E501

KERAS = """
## Configurations of Keras layers

`migrate --to keras` builds layers that an untrusted configuration names. These attacks change the configuration of a model in
`property_tests/attacks/keras_configurations.py`. `tests/savedmodel_migration/test_hostile_configurations.py` migrates each with
`--no-wrap`, and looks whether anything was run, read or written. All are refused with the layer; the table has a part of the
reason. Without `--no-wrap` the layer or the whole SavedModel is wrapped, and its configuration is not used.

"""  # noqa: E501


def head() -> str:
    """Return the beginning of the page, with the figures."""
    return HEAD.format(attacks=count(), commands=len(commands()))


def count() -> int:
    """Return the number of attacks."""
    verdicts = toml.read(FOLDER / "verdicts.toml")
    shared = {special.verdict_of(name) for name in special.MADE}
    return len(verdicts.keys() - shared) + len(special.MADE)


def commands() -> list[str]:
    """Return the commands that every attack is tried with."""
    return list(next(iter(toml.read(FOLDER / "verdicts.toml").values())))


def rows(*commands: str) -> list[tuple[str, ...]]:
    """Attack, what it is, the answers of some commands."""
    verdicts = toml.read(FOLDER / "verdicts.toml")
    told = {}
    for module in MODULES:
        for node in ast.parse((FOLDER / f"{module}.py").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                told[node.name] = title_and_rest(ast.get_docstring(node) or "")[0]
    told.update({name: special.described(name) for name in map(special.verdict_of, special.MADE)})
    found = []
    for name, answers in verdicts.items():
        of_commands = [answers[command] for command in commands]
        found.append((f"`{name}`", told[name], *of_commands))
    return found


def published_rows() -> list[tuple[str, ...]]:
    """Return id, what it is about, and its cases."""
    rows = []
    for name, entry in toml.read(FOLDER / "published.toml").items():
        cases = ", ".join(f"`{case}`" for case in entry["cases"])
        rows.append((name, entry["about"], cases))
    return rows


def keras_rows() -> list[tuple[str, ...]]:
    """Return attack, what it is, a part of the reason that it is refused for."""
    found = keras_configurations.ATTACKS.items()
    return [(f"`{name}`", attack.told, f"`{attack.refused}`") for name, attack in found]
