"""The prediction of a cell's result by the op history, and its comparison with the result.

Pure functions of a result.

A prediction is made from the files of the model (:mod:`compat_matrix.engine.predict`) and kept in
``details["prediction"]`` of the result, so that a run can be judged again without its artifacts.
Three answers:

    passes    the release has everything the cell needs
    fails     the release lacks something; the cell must fail with an error that shows one of the
              ``causes``
    unknown   the history cannot say; ``why``

The ledger takes precedence: an entry that a person wrote overrides any prediction.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.results import Result, one_line
from savedmodel_tools.skew import forms

KEY = "prediction"  # in the details of a result
TOLD = "foretold"  # likewise: a prediction in words by which the result is not judged
MAX_CAUSES = 40  # kept in a result
SHOWN = 3  # causes named in a sentence
SHOWN_TEXT = 300  # characters of an error
OTHER_LOADER = (
    "other_loader"  # two consumers use the same loader, but the history predicts different results
)
_OPS = frozenset(
    {"unknown_op", "removed_op", "renamed_contrib_op"}
)  # one cause: the release does not know the op


class Says(str, enum.Enum):
    """The kinds of predictions."""

    PASSES = "passes"
    FAILS = "fails"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Cause:
    """A feature that a release lacks, named as by :class:`savedmodel_tools.skew.naming.Skew`, or a
    form of :mod:`savedmodel_tools.skew.forms`."""

    kind: str
    op: str = ""
    attr: str = ""
    value: str = ""

    def __str__(self) -> str:
        if self.kind == forms.KIND and self.value in forms.FORMS:
            return f"what the release lacks: {forms.FORMS[self.value].what}"
        parts = [self.kind.replace("_", " ")]
        parts += [
            f"{name} '{text}'"
            for name, text in (("op", self.op), ("attr", self.attr), ("value", self.value))
            if text
        ]
        return ", ".join(parts)

    def to_json(self) -> dict[str, str]:
        return {key: value for key, value in vars(self).items() if value}

    def shown_by(self, result: Result) -> bool:
        """Return whether a failure has this cause."""
        form = forms.FORMS.get(self.value) if self.kind == forms.KIND else None
        if form is not None:
            return form.shown_by(str(result.outcome), result.message_normalised)
        if self.kind == OTHER_LOADER:
            return result.outcome is Outcome.DISAGREE
        seen = result.skew_facts
        if not (result.outcome.may_be_skew and seen):
            return False
        kind = str(seen.get("kind", ""))
        if kind == "forward_window":
            return True  # the message of an old release, which does not name the op
        if kind == "changed_inputs" and self.kind == "unknown_attr":
            return (
                bool(self.op) and seen.get("op") == self.op
            )  # an attr that is the type of an input
        if kind != self.kind and not {kind, self.kind} <= _OPS:
            return False
        names = [("op", self.op), ("attr", self.attr)]
        if kind in ("unknown_dtype", "min_consumer", "bad_consumer", "op_version"):
            names = [("value", self.value)]
        return all(
            not seen.get(name) or not wanted or seen[name] == wanted for name, wanted in names
        )


@dataclass(frozen=True)
class Prediction:
    """The predicted result of a cell.

    Attributes:
      causes: of a predicted failure; any of them may come first.
      why: the reason for "unknown".
      at: the step of a predicted failure, ``load`` or ``call``.
    """

    says: Says
    causes: tuple[Cause, ...] = ()
    why: str = ""
    at: str = ""

    def __str__(self) -> str:
        if self.says is Says.UNKNOWN:
            return f"no prediction: {self.why}"
        if self.says is Says.PASSES:
            return "passes"
        more = f" (and {len(self.causes) - SHOWN} more)" if len(self.causes) > SHOWN else ""
        return f"fails because of {'; or '.join(map(str, self.causes[:SHOWN]))}{more}"

    def to_json(self) -> dict[str, Any]:
        """Return the prediction as it is kept in a result."""
        found: dict[str, Any] = {"says": self.says.value}
        if self.causes:
            found["causes"] = [cause.to_json() for cause in self.causes[:MAX_CAUSES]]
        return found | {name: text for name, text in (("why", self.why), ("at", self.at)) if text}


def of(result: Result) -> Prediction | None:
    """Return the prediction kept in a result, None if there is none or it cannot be read."""
    kept: Any = result.details.get(KEY)
    try:
        causes = tuple(map(_cause, kept.get("causes", ())))
        return Prediction(
            Says(kept["says"]), causes, str(kept.get("why", "")), str(kept.get("at", ""))
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _cause(kept: Mapping[Any, Any]) -> Cause:
    return Cause(**{str(key): str(value) for key, value in kept.items()})


def holds(prediction: Prediction, result: Result) -> bool:
    """Return whether a result is as predicted.

    Without a prediction a pass is right, and a failure needs an entry.
    """
    if prediction.says is Says.FAILS:
        return any(cause.shown_by(result) for cause in prediction.causes)
    return not result.outcome.gate_failure


def predicted(result: Result) -> bool:
    """Return whether a failure is the predicted one, so that it does not need an entry."""
    found = of(result)
    return found is not None and found.says is Says.FAILS and holds(found, result)


def line(result: Result) -> str:
    """Return what was predicted and what was observed, in one line; "" for a result without a
    prediction.
    """
    found = of(result)
    if found is None:
        return ""
    text = result.skew_cause or one_line(result.message_normalised, SHOWN_TEXT)
    seen = " ".join(filter(None, (str(result.outcome), result.error_class or "")))
    return f"predicted: {found}; observed: {seen}" + (f" ({text})" if text else "")


def counts(judged: Iterable[tuple[Result, bool]]) -> dict[str, int]:
    """Count predictions for ``summary.json``: of each result, and whether an entry of the ledger
    speaks of its cell.

    ``right``: as predicted. ``wrong``: not as predicted, without an entry. ``explained``: not as
    predicted, with an entry. ``unknown``: without a prediction.
    """
    found = dict.fromkeys(("right", "wrong", "explained", "unknown"), 0)
    for result, has_entry in judged:
        foretold = of(result)
        if foretold is None or not result.outcome.observable:
            continue
        if foretold.says is Says.UNKNOWN:
            found["unknown"] += 1
        elif holds(foretold, result):
            found["right"] += 1
        else:
            found["explained" if has_entry else "wrong"] += 1
    return found
