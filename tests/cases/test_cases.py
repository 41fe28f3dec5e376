"""The case files and their discovery, without TensorFlow."""

import ast
import importlib.util
import json
import subprocess
import sys
import sysconfig
from collections import Counter, namedtuple
from pathlib import Path

import numpy as np
import pytest

from compat_matrix import cases
from compat_matrix.workers import nests, producing
from savedmodel_common import tensors

CASES = cases.all_cases()
# The families of the clause table and how many clauses each has.
FAMILIES = {
    "GOAL": 14, "NG": 4, "API": 5, "PRIM": 10, "FN": 17, "METH": 4, "PY": 10, "SIG": 17, "REX": 4,
    "IMP": 6, "ATTR": 10, "COMPAT": 6, "V1": 18, "RES": 15, "DEV": 5, "DIST": 4, "REV": 6, "OPT": 7,
    "INIT": 10, "RP": 10, "FMT": 14, "DR": 9,
}  # fmt: skip
GOOD = '''"""A title."""
CLAUSES = ("FN-01",)
FEATURES = ("functions",)

def build(tf, work):
    raise AssertionError("discovery builds nothing")

def requests(np):
    return [("serving_default", {"x": np.float32(1)}), ("child.f", (), {"training": True})]
'''


def _write(folder: Path, text: str, name: str = "mine.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_all_files_are_cases_with_unique_names() -> None:
    files = {path.stem for path in cases.CASES_DIR.glob("*.py")} - {"__init__"}
    names = [case.name for case in CASES]
    assert set(names) == files
    assert [name for name, count in Counter(names).items() if count > 1] == []
    assert len(names) >= 50


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_clauses_exist(case: cases.CaseInfo) -> None:
    for clause in case.clauses:
        family, number = clause.rsplit("-", 1)
        assert 1 <= int(number) <= FAMILIES[family], clause
    assert len(set(case.clauses)) == len(case.clauses)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_source_is_python_3_6_and_imports_the_standard_library_only(case: cases.CaseInfo) -> None:
    tree = ast.parse(case.file.read_text(encoding="utf-8"), feature_version=(3, 6))
    library = Path(sysconfig.get_path("stdlib")).resolve()
    assert tree.body
    for node in ast.walk(tree):
        assert not isinstance(node, ast.ImportFrom), (
            "a case is executed by path, so it imports whole modules"
        )
        for alias in node.names if isinstance(node, ast.Import) else ():
            spec = importlib.util.find_spec(alias.name)
            assert spec and spec.origin
            origin = Path(spec.origin).resolve() if spec.has_location else library
            assert library in (origin, *origin.parents) and "site-packages" not in origin.parts, (
                alias.name
            )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_cannot_be_answered_is_said_to_be_a_fault_or_a_refusal(case: cases.CaseInfo) -> None:
    answered = all(request.answered for request in case.requests)
    assert answered or {"fault", "refusal"} & set(case.features)


def test_discovery_does_not_import_tensorflow() -> None:
    program = (
        "import sys\n"
        "class Blocker:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        assert name.split('.')[0] not in ('tensorflow', 'keras', 'tf_keras'), name\n"
        "sys.meta_path.insert(0, Blocker())\n"
        "from compat_matrix.cases import all_cases\n"
        "from compat_matrix.workers import producing\n"
        "print(len(all_cases()))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(CASES)


def test_facts_of_a_case(tmp_path: Path) -> None:
    text = GOOD.replace(
        '"""A title."""',
        '"""A title.\n\nMore about it.\n"""\nTOLERANCE = (1e-3, 0.0, "long sums")\nCHECKS ='
        ' ("load",)\nTIMEOUT = 2.5',
    )
    _write(
        tmp_path,
        text + 'UNANSWERED = ("child.f",)\nREQUIRES = "tensorflow>=2.8"\nSAVE_OPTIONS = {}\n',
    )
    _write(tmp_path, "this is no Python", "_left_out.py")
    (case,) = cases.all_cases(tmp_path)
    assert (case.name, case.title, case.description) == ("mine", "A title.", "More about it.")
    assert case.tolerance == (1e-3, 0.0, "long sums")
    assert (case.checks, case.timeout, case.requires, case.stateful) == (
        ("load",),
        2.5,
        "tensorflow>=2.8",
        False,
    )
    assert case.requests == (("signature", "serving_default", True), ("function", "child.f", False))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("def broken(:\n", "cannot be executed: SyntaxError"),
        (GOOD + "import no_such_module_at_all\n", "ModuleNotFoundError"),
        (GOOD.replace('"""A title."""', ""), "no docstring"),
        (GOOD.replace("def build", "def built"), "no function build"),
        (GOOD + "TOLERENCE = (0.0, 0.0, 'typing error')\n", "unknown constant TOLERENCE"),
        (GOOD + "TOLERANCE = (0.1, 0.1)\n", "TOLERANCE must be"),
        (GOOD + "TOLERANCE = (0.1, 0.1, '')\n", "TOLERANCE must be"),
        (GOOD + "TIMEOUT = True\n", "TIMEOUT is True"),
        (GOOD + "STATEFUL = 1\n", "STATEFUL is 1"),
        (GOOD + "CHECKS = ('lod',)\n", "CHECKS holds 'lod'"),
        (GOOD + "warmup = ()\n", "warmup is not a function"),
        (GOOD + "CLAUSES = ('FN-1',)\n", "CLAUSES holds 'FN-1'"),
        (GOOD + "CLAUSES = 'FN-01'\n", "CLAUSES is 'FN-01'"),
        (GOOD.replace('CLAUSES = ("FN-01",)', ""), "CLAUSES must be a tuple"),
        (GOOD + "FEATURES = ('Big Words',)\n", "FEATURES holds"),
        (GOOD + "UNANSWERED = ('other',)\n", "UNANSWERED names 'other'"),
        (GOOD + "REFUSED = ('other',)\n", "REFUSED is ('other',)"),
        (GOOD + "REFUSED = {'f-0': ''}\n", "a part of the error message"),
        (GOOD + "UNANSWERED = ('serving_default',)\n", "only the last request"),
        (GOOD + "requests = lambda np: [('a', 1, 2, 3)]\n", "is neither"),
        (GOOD + "requests = lambda np: np.no_such\n", "requests(np) raises AttributeError"),
        (
            GOOD + "STATEFUL = True\nrequests = lambda np: [('f', (), {}), ('s', {})]\n",
            "signatures before its functions",
        ),
    ],
)
def test_a_case_that_breaks_the_contract_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = _write(tmp_path, text)
    with pytest.raises(cases.CaseError) as error:
        cases.all_cases(tmp_path)
    assert str(path) in str(error.value)
    assert reason in str(error.value)


def test_a_name_that_is_no_cell_segment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(cases.CaseError, match="lower case"):
        cases.read_case(_write(tmp_path, GOOD, "Not-A-Name.py"))


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="folder of cases"):
        cases.all_cases(tmp_path / "none")


def test_outputs_are_named_as_the_format_names_them() -> None:
    pair = namedtuple("pair", ["b", "a"])
    assert producing.named_outputs({"z": 1, "a": 2}) == [("a", 2), ("z", 1)]
    assert producing.named_outputs(pair(b=1, a=2)) == [("b", 1), ("a", 2)]
    assert producing.named_outputs([5, 6]) == [("output_0", 5), ("output_1", 6)]
    assert producing.named_outputs((5,)) == [("output_0", 5)]
    assert producing.named_outputs(5) == [("output_0", 5)]
    assert producing.named_outputs(None) == []


def test_a_nest_without_tensors_needs_no_tensorflow() -> None:
    nest = {
        "$tuple": [
            None,
            True,
            1,
            "text",
            [0.5, {"$float": "-inf"}],
            {"$dict": [["k", {"$namedtuple": ["P", [["x", 1]]]}]]},
        ]
    }
    value = nests.decode(None, json.loads(json.dumps(nest)), {})
    assert value[:4] == (None, True, 1, "text")
    assert value[4] == [0.5, -np.inf]
    assert value[5]["k"]._fields == ("x",) and type(value[5]["k"]).__name__ == "P"


def test_hostile_nests_are_refused() -> None:
    deep: object = 1
    for _ in range(nests.MAX_DEPTH + 1):
        deep = [deep]
    with pytest.raises(ValueError, match="deeper"):
        nests.decode(None, deep, {})
    for wrong in ({"$pickle": "x"}, {}, {"$tuple": [], "$dict": []}, {"plain": 1}):
        with pytest.raises(ValueError, match="not a nest"):
            nests.decode(None, wrong, {})
    with pytest.raises(ValueError, match="'t9'"):
        nests.decode(None, [{"$tensor": "t9"}], {"t0": tensors.from_numpy(np.float32(1))})


def test_paths_go_through_lists_mappings_and_attributes() -> None:
    node = namedtuple("node", ["child"])
    root = node(child=[{"a b": node(child="found")}])
    assert nests.resolve(root, "child.0.a b.child") == "found"
    for path, step in (("child.7", "'7'"), ("child.0.x", "'x'"), ("gone", "'gone'")):
        with pytest.raises(AttributeError, match=step):
            nests.resolve(root, path)
