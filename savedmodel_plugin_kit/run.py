"""Run the checks on a program and report the outcome of each."""

from __future__ import annotations

import tempfile
import traceback
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compat_matrix.plugins import probe
from compat_matrix.runtimes.programs import Program
from compat_matrix.runtimes.runtime import Runtime, local_runtime
from reference_impl.errors import SavedModelError
from savedmodel_plugin_kit.checks import CHECKS, Check
from savedmodel_plugin_kit.exam import Exam, NotAsked
from savedmodel_plugin_kit.rules import RULES, where
from savedmodel_plugin_kit.session import Mistake, Session

PASSED, FAILED, NOT_ASKED, NOT_REACHED = "passed", "failed", "not asked", "not reached"
DEFECT = "defect"  # of this program itself


@dataclass(frozen=True)
class Outcome:
    """The outcome of one check.

    For a failure, ``sent`` and ``came`` are the last messages and ``rule`` is the broken rule.
    """

    check: str
    state: str
    message: str = ""
    rule: str = ""
    notes: tuple[str, ...] = ()
    sent: tuple[Any, ...] = ()
    came: tuple[Any, ...] = ()

    def to_json(self) -> dict[str, Any]:
        asks = (
            {"rule": self.rule, "asks": RULES[self.rule], "where": where(self.rule)}
            if self.rule
            else {}
        )
        more = {"sent": list(self.sent), "came": list(self.came)} if self.state == FAILED else {}
        return {
            "check": self.check,
            "state": self.state,
            "message": self.message,
            "notes": list(self.notes),
            **asks,
            **more,
        }


@dataclass
class Settings:
    """The limits of a run.

    ``limit``: seconds for a step; ``grace``: seconds to end; ``large``: mebibytes.

    ``only``: names of checks.
    """

    limit: float = 60.0
    grace: float = 10.0
    large: int = 64
    only: Collection[str] = ()
    report: Callable[[Outcome], None] = field(default=lambda outcome: None)


def check(
    program: Program, settings: Settings | None = None, checks: Iterable[Check] = CHECKS
) -> list[Outcome]:
    """Run all checks and return the outcomes in their order.

    If hello fails, nothing else can be asked.
    """
    settings = settings or Settings()
    runtime: Runtime = probe.home() if program.at_home else local_runtime()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="plugin-check-") as folder:
        session = Session(program, runtime, Path(folder), settings.limit)
        exam = Exam(session, Path(folder) / "models", settings.large, settings.grace)
        exam.folder.mkdir()
        try:
            for one in checks:
                if settings.only and one.name not in settings.only and one.name != "hello":
                    continue
                reached = not outcomes or outcomes[0].state == PASSED
                outcomes.append(
                    _one(one, exam) if reached else Outcome(one.name, NOT_REACHED, "hello failed")
                )
                settings.report(outcomes[-1])
        finally:
            session.close()
    return outcomes


def _one(one: Check, exam: Exam) -> Outcome:
    exam.notes.clear()
    session = exam.session
    session.sent, session.came = [], []
    try:
        one.run(exam)
        session.quiet()
    except NotAsked as why:
        return Outcome(one.name, NOT_ASKED, str(why), notes=tuple(exam.notes))
    except Mistake as mistake:
        evidence = {
            "sent": tuple(session.sent),
            "came": tuple(session.came),
            "notes": tuple(exam.notes),
        }
        return Outcome(one.name, FAILED, str(mistake), mistake.rule or one.rules[0], **evidence)
    except SavedModelError as error:  # a model that the plug-in saved
        return Outcome(
            one.name,
            FAILED,
            f"what it wrote is no SavedModel: {error}",
            one.rules[0],
            tuple(exam.notes),
        )
    except Exception as error:
        text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        return Outcome(one.name, DEFECT, f"plugin-check itself failed: {text}")
    return Outcome(one.name, PASSED, notes=tuple(exam.notes))
