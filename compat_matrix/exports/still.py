"""The checks that run nothing and read only the files. They need no TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from compat_matrix.cells.outcomes import Outcome
from compat_matrix.cells.results import Observation
from compat_matrix.checks.context import Finding
from compat_matrix.exports.options import Options
from compat_matrix.requests.given import Prepared
from reference_impl.errors import SavedModelError
from savedmodel_common.placing import Unstageable
from savedmodel_common.printable import first_of

FINGERPRINT_RULE = "SMC107"
_SHOWN = 20


def observe(check: str, prepared: Prepared, options: Options) -> Observation:
    """Make one of ``options.STILL``."""
    try:
        if prepared.refused:
            raise prepared.refused
        return Observation(Outcome.PASS, details=RUN[check](prepared, options))
    except Finding as finding:
        return Observation(finding.outcome, finding.error_class, str(finding), finding.details)
    except (SavedModelError, Unstageable) as error:
        return Observation(
            Outcome.FAIL_STRUCTURE,
            f"{type(error).__module__}.{type(error).__qualname__}",
            str(error),
        )
    except OSError as error:
        return Observation(Outcome.ENV_ERROR, type(error).__name__, str(error))


def _requests(prepared: Prepared, _: Options) -> dict[str, Any]:
    if prepared.problems:
        raise Finding(
            Outcome.FAIL_SIGNATURE,
            first_of(prepared.problems),
            details={"problems": prepared.problems[:_SHOWN]},
        )
    return {}


def _inspect(prepared: Prepared, _: Options) -> dict[str, Any]:
    from reference_impl.views.model import inspect

    info = inspect(prepared.directory / "model")
    if info.problems:
        raise Finding(
            Outcome.FAIL_STRUCTURE,
            first_of(info.problems),
            details={"problems": list(info.problems)[:_SHOWN]},
        )
    return {"bytes": info.size, "meta_graphs": len(info.meta_graphs)}


def _verify(prepared: Prepared, options: Options) -> dict[str, Any]:
    """Verify the files. Findings below the failing level are listed in the details of the pass."""
    from savedmodel_tools.verify.findings import Severity

    found = [
        item for item in _findings(prepared.directory / "model") if item.rule != FINGERPRINT_RULE
    ]
    level = None if options.fail_on == "never" else Severity[options.fail_on.upper()]
    bad = [item for item in found if level is not None and item.severity >= level]
    details = {"findings": [item.to_json() for item in found[:_SHOWN]]} if found else {}
    if bad:
        texts = [f"{item.where}: {item.message}" for item in bad]
        raise Finding(
            Outcome.FAIL_STRUCTURE, first_of(texts), error_class=bad[0].rule, details=details
        )
    return details


def _fingerprint(prepared: Prepared, _: Options) -> dict[str, Any]:
    bad = [
        item
        for item in _findings(prepared.directory / "model", FINGERPRINT_RULE)
        if item.rule == FINGERPRINT_RULE
    ]
    if bad:
        raise Finding(
            Outcome.FAIL_STRUCTURE,
            f"fingerprint.pb: {bad[0].message}",
            error_class=FINGERPRINT_RULE,
        )
    return {}


def _findings(model: Path, only: str = "") -> list[Any]:
    from savedmodel_tools.verify.rules import all_rules
    from savedmodel_tools.verify.run import verify

    rules = [rule for rule in all_rules() if rule.id == only or not only]
    report = verify(model, rules)
    if report.error is not None:
        raise OSError(report.error)
    return list(report.findings)


RUN: dict[str, Callable[[Prepared, Options], dict[str, Any]]] = {
    "requests": _requests,
    "inspect": _inspect,
    "verify": _verify,
    "fingerprint": _fingerprint,
}
