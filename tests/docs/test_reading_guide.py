"""The reading guide of the reference implementation names functions and classes that are where it
says.
"""

import ast
import re
from pathlib import Path

from reference_impl import tracing
from reference_impl.saving import stages

ROOT = Path(__file__).parents[2] / "reference_impl"
NAMED = re.compile(r"\[`([A-Za-z_.]+)`\]\(([\w/]+\.py)\)")


def defined(file: Path) -> set[str]:
    """Return the names of the functions, classes and methods of a module; methods have that of the
    class before them.
    """
    found = set()
    for item in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(item, (ast.FunctionDef, ast.ClassDef)):
            found.add(item.name)
            members = item.body if isinstance(item, ast.ClassDef) else []
            found |= {
                f"{item.name}.{member.name}"
                for member in members
                if isinstance(member, ast.FunctionDef)
            }
    return found


def test_what_the_guide_names_is_where_it_says():
    named = NAMED.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    names = [(name, ROOT / place) for name, place in named if not name.endswith(".py")]
    wrong = [
        name for name, file in names if name.removeprefix(f"{file.stem}.") not in defined(file)
    ]
    assert len(names) > 20 and wrong == []


def walk(title: str) -> list[tuple[str, str]]:
    """Return the stage and the text of each line of the numbered list of a section."""
    guide = (ROOT / "README.md").read_text(encoding="utf-8")
    section = guide.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([a-z ]+)`: (.*)$", section, re.MULTILINE)


def test_the_walk_of_a_load_has_the_stages_that_a_trace_prints():
    elsewhere = {"graph", "error"}  # of a TF 1.x model, and of a load that fails
    assert [stage for stage, _ in walk("A load")] == [
        stage for stage in tracing.STAGES if stage not in elsewhere
    ]


def test_the_walk_of_a_save_has_the_stages_of_the_code():
    lines = walk("A save")
    assert [stage for stage, _ in lines] == [stage.name for stage in stages.STAGES]
    links = [f"[`{stage.function}`](saving/{stage.module}.py)" for stage in stages.STAGES]
    assert [link for link, (_, text) in zip(links, lines) if link not in text] == []


def test_the_walk_of_a_tf_1_model_has_stages_that_a_trace_prints():
    found = [stage for stage, _ in walk("A TF 1.x model")]
    assert found.count("graph") == 4
    order = list(dict.fromkeys(found))
    # A trace tells objects before their values, as the table of stages in `tracing` says.
    assert set(order) <= set(tracing.STAGES)
    assert order == ["graph", "object", "checkpoint", "value", "initializer", "signature"]
