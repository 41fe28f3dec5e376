"""The clause table of the documentation: it holds, and its checker notices when it does not."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def clauses():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        from docs import clauses

        yield clauses


def test_the_table_holds_and_the_pages_are_fresh():
    done = subprocess.run(
        [sys.executable, "-m", "docs.generate", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("test_FN_07_captures", ("FN-07",)),
        ("test_V1_04_and_05_and_PY_09_tags", ("V1-04", "V1-05", "PY-09")),
        ("test_PRIM_06", ("PRIM-06",)),
        ("test_RES_15_and_a_table", ("RES-15",)),
        ("test_FN_071_no_clause", ()),
        ("test_tables", ()),
    ],
)
def test_clauses_in_the_name_of_a_test(clauses, name, found):
    assert clauses.clauses_of_name(name) == found


def test_clauses_in_the_marks_of_a_test(clauses, tmp_path):
    source = """
        import pytest

        class TestAll:
            @pytest.mark.parametrize("x", [1])
            @pytest.mark.clause("FN-07", "PY-09")
            def test_FN_08_something(self, x): ...

        @pytest.mark.clause("FN-01")
        def helper(): ...

        def test_without(): ...
    """
    (tmp_path / "test_x.py").write_text(textwrap.dedent(source))
    assert [tuple(test[1:]) for test in clauses.find_tests([tmp_path / "test_x.py"])] == [
        ("test_FN_08_something", ("FN-08", "FN-07", "PY-09"))
    ]


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('id = "FN-07"', 'id = "FN-08"', "FN-07 is not listed"),
        ('id = "FN-07"', 'id = "FN-08"', "FN-08 is listed 2 times"),
        ('id = "FN-07"', 'id = "FN-99"', "FN-99 is not a clause of the RFC"),
        (
            'id = "FN-07"',
            'id = "FN-99"',
            "test_some.py::test_FN_07_x names the unknown clause FN-07",
        ),
        ('status = "done"', 'status = "finished"', "FN-07: status is 'finished'"),
        (
            'status = "done"',
            'status = "todo"',
            "FN-07: status is 'todo', not one of done, explained",
        ),
        ('follow = "TF"', 'follow = "me"', "FN-07: follow is 'me'"),
        ('status = "done"', 'status = "explained"', "FN-07 is explained without a note"),
        ('says = "a"', 'says = ""', "FN-07: says is empty"),
    ],
)
def test_a_wrong_table_is_refused(clauses, tmp_path, old, new, fault):
    tests = [clauses.Test(Path("test_some.py"), "test_FN_07_x", ("FN-07",))]
    table = _table(tmp_path, clauses)
    assert clauses.faults(clauses.read_table(table), tests) == []
    head, tail = table.read_text().split('id = "FN-07"')
    table.write_text(head + ('id = "FN-07"' + tail).replace(old, new, 1))
    assert any(fault in line for line in clauses.faults(clauses.read_table(table), tests))


@pytest.mark.parametrize(("follow", "proofs"), [("RFC", 1), ("both", 1), ("TF", 0)])
def test_what_follows_the_rfc_is_not_done_without_a_test(clauses, tmp_path, follow, proofs):
    path = _table(tmp_path, clauses)
    path.write_text(path.read_text().replace('"TF"', f'"{follow}"', 1))
    table = clauses.read_table(path)
    found = clauses.faults(table, [])
    assert len(found) == proofs and all("GOAL-01 " in line for line in found)
    assert (
        clauses.faults(table, [clauses.Test(Path("test_some.py"), "test_GOAL_01_x", ("GOAL-01",))])
        == []
    )


def test_an_explained_clause_needs_a_test_of_what_is_kept(clauses, tmp_path):
    path = _table(tmp_path, clauses)
    note = 'status = "explained"\nnote = "kept in part"'
    path.write_text(path.read_text().replace('status = "done"', note, 1))
    found = clauses.faults(clauses.read_table(path), [])
    assert len(found) == 1 and found[0].startswith("GOAL-01 is explained")
    proof = clauses.Test(Path("test_some.py"), "test_GOAL_01_x", ("GOAL-01",))
    assert clauses.faults(clauses.read_table(path), [proof]) == []


def test_an_entry_without_a_field_is_named(clauses, tmp_path):
    path = _table(tmp_path, clauses)
    path.write_text(path.read_text().replace('says = "a"\n', "", 1))
    with pytest.raises(ValueError, match="'GOAL-01' must"):
        clauses.read_table(path)


def _table(folder, clauses):
    path = folder / "clauses.toml"
    entry = (
        '[[clause]]\nid = "{}-{:02}"\nsection = "a"\nrfc = "a"\nsays = "a"\ntensorflow ='
        ' "same"\nobserved = "a"\n'
    )
    entry += 'follow = "TF"\nstatus = "done"\n'
    path.write_text(
        "\n".join(
            entry.format(family, n + 1)
            for family, count in clauses.FAMILIES.items()
            for n in range(count)
        )
    )
    return path
