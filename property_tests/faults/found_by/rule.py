"""A rule of `verify`: it finds the defect that it is for, and no other rule finds anything."""

from __future__ import annotations

from dataclasses import dataclass
from unittest import mock

from property_tests.faults.declaring import Fault, Seen
from property_tests.faults.stage import Stage
from savedmodel_tools.find import find
from savedmodel_tools.verify.rules import file
from savedmodel_tools.verify.run import verify

UNFINISHED = "SMC102"  # such a folder is not a model yet: the walk through folders tells of it
NEAR = 1000  # bytes; the real limit of a file's size would need a file of 2 GB


@dataclass(frozen=True)
class RuleOfVerify:
    """The rule with this id."""

    id: str

    def shown(self) -> str:
        return "`verify model`"

    def declaration(self) -> tuple[object, ...]:
        return ("verify", self.id)

    def look(self, fault: Fault, stage: Stage) -> Seen:
        folder = stage.folder / fault.name
        folder.mkdir(parents=True)
        fault.plant(folder)
        if self.id == UNFINISHED:
            found = find([str(folder)])
            seen = [item.kind for item in found.skipped]
            defect = "" if (found.models, seen) == ([], ["unfinished"]) else f"{found}"
            return Seen(self.id, "unfinished", defect)
        with mock.patch.object(file, "NEAR", NEAR if self.id == "SMC105" else file.NEAR):
            report = verify(folder / "model")
        lines = [f"{finding.rule} {finding.message}" for finding in report.findings]
        others = [line for line in lines if not line.startswith(self.id)]
        if report.error is not None or others or not lines:
            return Seen("", "", f"{report.error or others or 'nothing is found'}")
        line = lines[0].partition(" ")[2].replace(str(folder), ".")
        return Seen(self.id, line, "")
