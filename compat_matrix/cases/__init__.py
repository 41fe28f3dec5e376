"""The cases: one small file each (docs/exporters/artifacts.md, section 4), found here without
TensorFlow.

A case file is executed to read its constants; its ``build`` is not called, so nothing here needs
TensorFlow.
"""

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

CASES_DIR = Path(__file__).parent
CHECKS = tuple(
    sorted(path.stem for path in (CASES_DIR.parent / "checks" / "kinds").glob("[a-z]*.py"))
)  # not imported
CLAUSE = re.compile(r"[A-Z][A-Z0-9]*-\d\d\Z")
NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
CONSTANTS = (
    "CLAUSES", "FEATURES", "TOLERANCE", "STATEFUL", "CHECKS", "TIMEOUT", "REQUIRES", "UNANSWERED",
    "REFUSED", "SAVE_OPTIONS", "REFERENCE_OPTIONS",
)  # fmt: skip


def title_and_rest(docstring: str) -> Tuple[str, str]:
    """Return the first paragraph of a docstring as one line, and what comes after it."""
    title, _, rest = docstring.strip().partition("\n\n")
    return " ".join(title.split()), rest.strip()


class CaseError(ValueError):
    """A case file breaks the contract; the message names the file and the reason."""


class Tolerance(NamedTuple):
    """How far an answer may differ from the recorded one, and why."""

    rtol: float = 0.0
    atol: float = 0.0
    reason: str = "bit-exact"


class RequestInfo(NamedTuple):
    """One request of a case: ``kind`` is "signature" or "function", ``name`` the signature's key or
    the function's path.
    """

    kind: str
    name: str
    answered: bool


class CaseInfo(NamedTuple):
    """The facts about a case that are known before anything runs."""

    name: str
    title: str
    description: str
    clauses: Tuple[str, ...]
    features: Tuple[str, ...]
    tolerance: Tolerance
    stateful: bool
    checks: Optional[Tuple[str, ...]]
    timeout: Optional[float]
    requires: Optional[str]
    requests: Tuple[RequestInfo, ...]
    file: Path


def all_cases(cases_dir: Union[str, Path, None] = None) -> List[CaseInfo]:
    """Return every case of a folder (ours by default), sorted by name.

    ``cases_dir`` is the folder of a third party or a test. Files whose name starts with an
    underscore are left out. Raises CaseError for a file that breaks the contract and
    FileNotFoundError for a missing folder.
    """
    folder = CASES_DIR if cases_dir is None else Path(cases_dir)
    if not folder.is_dir():
        raise FileNotFoundError(f"no folder of cases at {folder}")
    return [
        read_case(path) for path in sorted(folder.glob("*.py")) if not path.name.startswith("_")
    ]


def read_case(path: Union[str, Path]) -> CaseInfo:
    """Read the facts of one case file. Raises CaseError when the file breaks the contract."""
    file = Path(path)
    reader = _Reader(file)
    title, description = reader.texts()
    return CaseInfo(
        name=file.stem,
        title=title,
        description=description,
        clauses=reader.words("CLAUSES", CLAUSE),
        features=reader.words("FEATURES", re.compile(r"[a-z][a-z0-9_ -]*\Z")),
        tolerance=reader.tolerance(),
        stateful=reader.typed("STATEFUL", bool, False),
        checks=reader.checks(),
        timeout=reader.typed("TIMEOUT", (int, float), None),
        requires=reader.typed("REQUIRES", str, None),
        requests=reader.requests(),
        file=file,
    )


def _execute(file: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"compat_matrix_case_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise CaseError(f"{file}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise CaseError(f"{file}: cannot be executed: {type(error).__name__}: {error}") from error
    return module


class _Reader:
    """Reads and checks the constants of one case file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        if not NAME.match(file.stem):
            raise self.error("the name must be lower case letters, digits and underscores")
        self.module = _execute(file)
        self.values: Dict[str, Any] = {
            key: value
            for key, value in vars(self.module).items()
            if key.isupper() and key[0] != "_"
        }
        unknown = sorted(set(self.values) - set(CONSTANTS))
        if unknown:
            raise self.error(
                f"unknown constant {unknown[0]} (the contract has {', '.join(CONSTANTS)})"
            )
        for function in ("build", "requests"):
            if not callable(getattr(self.module, function, None)):
                raise self.error(f"there is no function {function}")
        for function in ("after_save", "warmup"):
            if not callable(getattr(self.module, function, callable)):
                raise self.error(f"{function} is not a function")

    def error(self, reason: str) -> CaseError:
        return CaseError(f"{self.file}: {reason}")

    def texts(self) -> Tuple[str, str]:
        """Return the title (the first paragraph of the docstring) and the rest of it."""
        docstring = ast.get_docstring(ast.parse(self.file.read_text(encoding="utf-8")))
        if not docstring or not docstring.strip():
            raise self.error("there is no docstring, so the case has no title")
        return title_and_rest(docstring)

    def typed(self, name: str, kind: Any, default: Any) -> Any:
        value = self.values.get(name, default)
        if name in self.values and (
            not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool)
        ):
            raise self.error(f"{name} is {value!r}, which has the wrong type")
        return value

    def words(self, name: str, pattern: "re.Pattern[str]") -> Tuple[str, ...]:
        value = self.typed(name, tuple, ())
        if not value:
            raise self.error(f"{name} must be a tuple of at least one word")
        for word in value:
            if not isinstance(word, str) or not pattern.match(word):
                raise self.error(f"{name} holds {word!r}, which is not well-formed")
        return tuple(value)

    def tolerance(self) -> Tolerance:
        value = self.typed("TOLERANCE", tuple, None)
        if value is None:
            return Tolerance()
        if len(value) != 3 or not isinstance(value[2], str) or not value[2]:
            raise self.error("TOLERANCE must be (rtol, atol, reason)")
        return Tolerance(float(value[0]), float(value[1]), value[2])

    def checks(self) -> Optional[Tuple[str, ...]]:
        value = self.typed("CHECKS", tuple, None)
        for word in value or ():
            if word not in CHECKS:
                raise self.error(f"CHECKS holds {word!r}; the checks are {', '.join(CHECKS)}")
        return value if value is None else tuple(value)

    def requests(self) -> Tuple[RequestInfo, ...]:
        try:
            requests: Sequence[Any] = self.module.requests(np)
        except Exception as error:
            raise self.error(f"requests(np) raises {type(error).__name__}: {error}") from error
        unanswered = self.typed("UNANSWERED", tuple, ())
        if not all(
            isinstance(text, str) and text for text in self.typed("REFUSED", dict, {}).values()
        ):
            raise self.error(
                "REFUSED is a dict: the id of a request -> a part of the error message"
            )
        out = []
        for request in requests:
            if (
                not isinstance(request, tuple)
                or len(request) not in (2, 3)
                or not isinstance(request[0], str)
            ):
                raise self.error(
                    f"{request!r} is neither (signature, inputs) nor (path, args, kwargs)"
                )
            kind = "signature" if len(request) == 2 else "function"
            out.append(RequestInfo(kind, request[0], request[0] not in unanswered))
        kinds = [info.kind for info in out]
        if self.values.get("STATEFUL") and kinds != sorted(kinds, reverse=True):
            # Consumers without functions skip those requests, so state changed by the requests
            # would be missing.
            raise self.error("a stateful case asks its signatures before its functions")
        missing = set(unanswered) - {info.name for info in out}
        if missing:
            raise self.error(f"UNANSWERED names {min(missing)!r}, which is not requested")
        if not all(info.answered for info in out[:-1]):
            # The first finding decides a cell: an expected failure must not come before an
            # unexpected one.
            raise self.error("only the last request may be unanswered")
        return tuple(out)
