"""Which constraints of the specification a reader keeps, from its answers about the kit.

A sound model shows its constraints at their level: they are kept if the reader gives the meaning
that the kit states. A hostile file shows one constraint: it is kept if the reader refuses the file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Optional

from savedmodel_kit.answers import Answered
from savedmodel_kit.constraints import LEVELS, Constraint
from savedmodel_kit.consumer import Answer

ANSWERS = "L3"
_READ_LEVELS = tuple(level for level in LEVELS if level != ANSWERS)
_FALSE = "SM-SIG-6"  # its artifacts contradict their signatures, so no answer is right
_REFUSED_BY = "SM-LOAD-8"  # what a refusal to evaluate an artifact shows
_LONGEST = 120  # characters of a value in a difference
NOT_REFUSED = "read without an error, and MUST be refused"


class Kit(NamedTuple):
    """An unpacked kit.

    Attributes:
      folder: the folder of its index.
      content: the content of ``index.json``.
    """

    folder: Path
    content: dict[str, Any]

    def models(self) -> dict[str, Path]:
        """Return the folder of every model by the name that results use: that of its folder."""
        listed = [*self.content["artifacts"], *self.content["hostile"]]
        return {one["folder"]: self.folder / one["folder"] / "model" for one in listed}

    def artifacts(self) -> dict[str, Path]:
        """Return the folder of every sound model by its name."""
        listed = [one["folder"] for one in self.content["artifacts"]]
        return {name: self.folder / name / "model" for name in listed}

    def meaning(self, artifact: Mapping[str, Any]) -> dict[str, Any]:
        file = self.folder / artifact["folder"] / "meaning.json"
        meaning: dict[str, Any] = json.loads(file.read_text("utf-8"))
        return meaning


def open_kit(folder: Path) -> Kit:
    """Open an unpacked kit. Raises OSError or ValueError: the folder has no index."""
    return Kit(folder, json.loads((folder / "index.json").read_text("utf-8")))


class Observation(NamedTuple):
    """One artifact at one level.

    Attributes:
      name: the folder of the artifact in the kit.
      level: such as ``L1``.
      fault: what is wrong, or None.
      ids: the constraints that it shows.
      refused: at level L3, the reason why the reader gives no answer.
    """

    name: str
    level: str
    fault: Optional[str]
    ids: tuple[str, ...]
    refused: Optional[str] = None


def _is_right(one: Observation) -> bool:
    return one.fault is None and one.refused is None


@dataclass
class Score:
    """The score of a reader.

    Attributes:
      levels: the levels that were checked.
      observations: what came of each artifact.
      kept, broken: ids of constraints.
      not_shown: constraints of these levels that no artifact of the kit shows.
    """

    levels: tuple[str, ...]
    observations: list[Observation] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    not_shown: list[str] = field(default_factory=list)

    def faults(self) -> list[Observation]:
        return [one for one in self.observations if one.fault is not None]

    def counts(self, level: str) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return how many sound models of a level are as stated, of how many; and how many hostile
        files are refused, of how many.
        """
        seen = [one for one in self.observations if one.level == level]
        hostile = [_is_right(one) for one in seen if one.name.startswith("hostile/")]
        sound = [_is_right(one) for one in seen if not one.name.startswith("hostile/")]
        return (sum(sound), len(sound)), (sum(hostile), len(hostile))

    def joined(self, other: Score) -> Score:
        """Return this score with that of other levels."""
        return Score(
            self.levels + other.levels,
            self.observations + other.observations,
            self.kept + other.kept,
            self.broken + other.broken,
            self.not_shown + other.not_shown,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "levels": list(self.levels),
            "kept": self.kept,
            "broken": self.broken,
            "not_shown": self.not_shown,
            "observations": [one._asdict() for one in self.observations],
        }


def levels_of(answers: Mapping[str, Answer]) -> tuple[str, ...]:
    """Return the levels that a reader gives for any model."""
    given: set[str] = set()
    for one in answers.values():
        given.update(one.meaning or ())
    return tuple(level for level in _READ_LEVELS if LEVELS[level] in given)


def score(
    kit: Kit,
    answers: Mapping[str, Answer],
    constraints: Mapping[str, Constraint],
    levels: Sequence[str],
) -> Score:
    """Return the score of a reader at some levels.

    Args:
      kit: the kit that it was asked about.
      answers: its answers, by the folders of the models. A model without one counts as failed.
      constraints: the constraints of the specification.
      levels: the levels to check.
    """
    made = Score(tuple(levels))
    for artifact in kit.content["artifacts"]:
        answer = answers.get(artifact["folder"], Answer(failed="no answer"))
        stated = kit.meaning(artifact)
        for level in levels:
            fault = _fault(stated.get(LEVELS[level]), answer, level)
            ids = _shown_by(artifact["name"], level, constraints)
            made.observations.append(Observation(artifact["folder"], level, fault, ids))
    for hostile in kit.content["hostile"]:
        if hostile["level"] in levels:
            answer = answers.get(hostile["folder"], Answer(failed="no answer"))
            fault = _not_refused(answer, hostile["level"])
            ids = (hostile["constraint"],)
            made.observations.append(Observation(hostile["folder"], hostile["level"], fault, ids))
    _count(made, constraints)
    return made


def score_answers(
    kit: Kit, answered: Mapping[str, Answered], constraints: Mapping[str, Constraint]
) -> Score:
    """Return the score of an evaluator at level L3.

    Args:
      kit: the kit that it was asked about.
      answered: what came of its artifacts, by their folders.
      constraints: the constraints of the specification.
    """
    made = Score((ANSWERS,))
    for artifact in kit.content["artifacts"]:
        name, found = artifact["folder"], answered.get(artifact["folder"])
        if found is None or _case(artifact["name"]) in constraints[_FALSE].fixtures:
            continue
        ids = _shown_by(artifact["name"], ANSWERS, constraints)
        if found.fault is None and found.refused is not None:
            ids = tuple(one for one in ids if one == _REFUSED_BY)
        made.observations.append(Observation(name, ANSWERS, found.fault, ids, found.refused))
    _count(made, constraints)
    return made


def _count(made: Score, constraints: Mapping[str, Constraint]) -> None:
    shown: dict[str, bool] = {}
    for one in made.observations:
        for name in one.ids:
            shown[name] = shown.get(name, True) and one.fault is None
    for name, constraint in constraints.items():
        if name in shown:
            (made.kept if shown[name] else made.broken).append(name)
        elif constraint.role == _role(constraint.level) and constraint.level in made.levels:
            made.not_shown.append(name)


def _shown_by(name: str, level: str, constraints: Mapping[str, Constraint]) -> tuple[str, ...]:
    """Return the constraints that a committed artifact shows at a level."""
    case = _case(name)
    return tuple(
        one.id
        for one in constraints.values()
        if one.role == _role(level) and one.level in (level, None) and case in one.fixtures
    )


def _case(name: str) -> str:
    """Return the case of an artifact: ``pbtxt`` of ``fixtures_v1/pbtxt``."""
    return name.split("/")[1] if "/" in name else name


def _role(level: Optional[str]) -> str:
    """Return the role that keeps the constraints of a level."""
    return "evaluator" if level == ANSWERS else "reader"


# Sound models


def _fault(stated: Any, answer: Answer, level: str) -> Optional[str]:
    """Return how an answer about a sound model differs from its meaning, or None."""
    if answer.failed is not None:
        return answer.failed
    refusal = answer.refused or _refusal(answer, level)
    if _is_refusal(stated):  # a reader that handles the form in question may give its content
        return None
    if refusal is not None:
        return f"refused: {refusal}"
    assert answer.meaning is not None
    if LEVELS[level] not in answer.meaning:
        return f"the meaning has no member {LEVELS[level]!r}"
    return difference(stated, answer.meaning[LEVELS[level]])


def _is_refusal(member: Any) -> bool:
    return isinstance(member, dict) and "refused" in member


def _refusal(answer: Answer, level: str) -> Optional[str]:
    """Return the reason with which an answer refuses one level, or None."""
    member: Any = (answer.meaning or {}).get(LEVELS[level])
    return str(member["refused"]) if _is_refusal(member) else None


def difference(stated: Any, given: Any, where: str = "") -> Optional[str]:
    """Return the first difference between two values of a meaning, with its place, or None.

    For example, ``tensors['a'].shape[0]: stated 2, given 3``. Lists of tensors are compared by
    their keys, so their order does not count.
    """
    for found in _differences(stated, given, where):
        return found
    return None


def _differences(stated: Any, given: Any, where: str) -> Iterator[str]:
    if _is_keyed(stated) and _is_keyed(given):
        stated, given = _by_key(stated), _by_key(given)
    if isinstance(stated, dict) and isinstance(given, dict):
        for key in sorted(stated.keys() | given.keys()):
            place = f"{where}.{key}" if where and key.isidentifier() else _place(where, key)
            if key not in given:
                yield f"{place}: missing"
            elif key not in stated:
                yield f"{place}: is not in the model"
            else:
                yield from _differences(stated[key], given[key], place)
    elif isinstance(stated, list) and isinstance(given, list) and len(stated) == len(given):
        for number, pair in enumerate(zip(stated, given)):
            yield from _differences(*pair, f"{where}[{number}]")
    elif stated != given or type(stated) is not type(given):
        yield f"{where}: stated {_short(stated)}, given {_short(given)}"


def _place(where: str, key: str) -> str:
    return f"{where}[{key!r}]" if where else key


def _is_keyed(value: Any) -> bool:
    """Return whether a value is a list of tensors with different keys."""
    if not isinstance(value, list) or not value:
        return False
    keys = {one.get("key") for one in value if isinstance(one, dict)}
    return len(keys) == len(value) and all(isinstance(key, str) for key in keys)


def _by_key(value: list[Any]) -> dict[str, Any]:
    return {one["key"]: one for one in value}


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


# Hostile files


def _not_refused(answer: Answer, level: str) -> Optional[str]:
    """Return what is wrong with an answer about a hostile file, or None if it is a refusal."""
    if answer.failed is not None:
        return answer.failed
    if answer.refused is not None:
        return None
    below = _READ_LEVELS[: _READ_LEVELS.index(level) + 1]
    refused = any(_refusal(answer, one) is not None for one in below)
    return None if refused else NOT_REFUSED
