"""Findings as SARIF 2.1.0, the form in which code hosts and review tools read the results of static
analysis. Pure.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from savedmodel_common.printable import printable
from savedmodel_tools.verify.findings import Finding, Rule, Severity
from savedmodel_tools.verify.run import Report

VERSION = "2.1.0"
SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


def log(reports: Sequence[Report], rules: Sequence[Rule], version: str) -> dict[str, Any]:
    """Return the SARIF log of one run of this ``version``; each finding's rule is among
    ``rules``.
    """
    numbers = {rule.id: number for number, rule in enumerate(rules)}
    failed = [report for report in reports if report.error]
    invocation: dict[str, Any] = {"executionSuccessful": not failed}
    if failed:
        invocation["toolExecutionNotifications"] = [
            {"level": "error", "message": {"text": printable(f"{report.name}: {report.error}")}}
            for report in failed
        ]
    driver = {
        "name": "savedmodel-compat",
        "version": version,
        "rules": [_rule(rule) for rule in rules],
    }
    results: list[dict[str, Any]] = []
    for report in reports:
        results += [_result(report, one, numbers[one.rule]) for one in report.findings]
    run = {
        "tool": {"driver": driver},
        "invocations": [invocation],
        "columnKind": "unicodeCodePoints",
        "results": results,
    }
    return {"$schema": SCHEMA, "version": VERSION, "runs": [run]}


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": "".join(word.capitalize() for word in rule.name.split("-")),
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(report: Report, finding: Finding, number: int) -> dict[str, Any]:
    logical = ".".join(filter(None, (finding.tags, finding.function, finding.node)))
    location: dict[str, Any] = {
        "physicalLocation": {"artifactLocation": {"uri": uri(report.name, finding.file)}}
    }
    if logical:
        kind = "member" if finding.node else "function" if finding.function else "module"
        name = finding.node or finding.function or finding.tags or ""
        location["logicalLocations"] = [
            {
                "name": printable(name, False),
                "fullyQualifiedName": printable(logical, False),
                "kind": kind,
            }
        ]
    where = f"{finding.where}: " if finding.where else ""
    said = printable(f"{where}{finding.message}. Fix: {finding.fix}", newlines=False)
    # What stays the same when other findings come and go, so that a code host knows a finding
    # again.
    identity = "\0".join(
        str(part)
        for part in (
            report.name,
            finding.rule,
            finding.tags,
            finding.function,
            finding.node,
            finding.message,
        )
    )
    return {
        "ruleId": finding.rule,
        "ruleIndex": number,
        "level": _LEVELS[finding.severity],
        "message": {"text": said},
        "locations": [location],
        "partialFingerprints": {
            "finding/v1": hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()[
                :32
            ]
        },
    }


def uri(name: str, file: str | None) -> str:
    """A URI of a model's file: relative as the model was named, a URL as it is, an absolute path as
    file:.
    """
    path = name.replace(os.sep, "/").rstrip("/") if "://" not in name else name.rstrip("/")
    is_file = path.endswith((".pb", ".pbtxt", ".cpb"))
    path = path if is_file else f"{path}/{file or 'saved_model.pb'}"
    data = path.encode("utf-8", "surrogateescape")
    quoted = quote(data, safe="/:@!$&'()*+,;=-._~" if "://" in path else "/@!$&'()*+,;=-._~")
    return f"file://{quoted}" if path.startswith("/") else quoted
