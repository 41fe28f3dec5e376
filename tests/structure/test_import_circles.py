"""No module imports another that imports it: at the top, in a function or for a type only."""

from __future__ import annotations

from import_walk import PACKAGES, imported, modules

from reference_impl.graph.order import circles


def test_modules_do_not_import_each_other_in_a_circle():
    files = modules()
    edges = {name: imported(name, path, files.keys()) for name, path in files.items()}
    assert all(
        any(name.startswith(package) and edges[name] for name in edges) for package in PACKAGES
    )
    assert circles(edges) == []


def test_a_planted_circle_is_found(tmp_path):
    (tmp_path / "a.py").write_text("def late():\n    from . import b\n")
    (tmp_path / "b.py").write_text(
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import p.a\n"
    )
    known = {"p.a", "p.b"}
    assert circles(
        {name: imported(name, tmp_path / f"{name[2:]}.py", known) for name in known}
    ) == [["p.a", "p.b"]]
