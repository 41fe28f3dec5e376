"""The reading guide of the reference implementation names functions and classes that are where it
says.
"""

import ast
import re
from pathlib import Path

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
