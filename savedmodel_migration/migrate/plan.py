"""The plan for a model: its kind, what will be done with it and what cannot be, read from its files
without TensorFlow.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from reference_impl.errors import SavedModelError
from reference_impl.format.container import layout
from reference_impl.graph.references import all_nodes
from reference_impl.views.signatures import signature_spec
from savedmodel_common.printable import message_of
from savedmodel_migration.migrate.advice import fix_of
from savedmodel_migration.migrate.same_graph import content_of
from savedmodel_tools.record_files import files_of

TF1, TF2 = "TF 1.x", "TF 2"


@dataclass
class PartPlan:
    """One MetaGraph: its tags, what it is, its signatures.

    ``symbolic``: a function calls SymbolicGradient. ``content``: a digest of the MetaGraph without
    its tags, where the model has several.
    """

    tags: tuple[str, ...]
    kind: str
    signatures: list[str]
    symbolic: bool = False
    content: bytes = b""


@dataclass
class ModelPlan:
    """A model. ``problem``: why nothing can be done with it; ``fix``: what would help."""

    parts: list[PartPlan] = field(default_factory=list)
    tensorflow: str = ""
    size: int = 0
    problem: str = ""
    fix: str = ""

    @property
    def kind(self) -> str:
        """TF 2 when all of it is."""
        if not self.parts:
            return ""
        return TF2 if all(part.kind == TF2 for part in self.parts) else TF1

    @property
    def action(self) -> str:
        """The action of a plan."""
        if self.problem:
            return "refuse"
        if self.kind == TF2:
            return "copy"
        return (
            "convert"
            if len(self.parts) == 1
            else f"convert into {len(self.parts)}, one for each set of tags"
        )


def plan_of(path: Path) -> ModelPlan:
    """The plan of one model. Never raises for what is wrong with the model."""
    try:
        found = layout.read(path)
        graphs = found.saved_model.meta_graphs
        plan = ModelPlan(size=size_of(found.directory))
        plan.tensorflow = max(
            (graph.meta_info_def.tensorflow_version for graph in graphs), default=""
        )
        for graph in graphs:
            kind = TF2 if graph.HasField("object_graph_def") and len(graphs) == 1 else TF1
            tags, signatures = layout.tags_of(graph), sorted(signature_spec(graph))
            symbolic = any(node.op == "SymbolicGradient" for node in all_nodes(graph.graph_def))
            content = content_of(graph) if len(graphs) > 1 else b""
            plan.parts.append(PartPlan(tags, kind, signatures, symbolic, content))
        if not plan.parts:
            plan.problem = "it holds no MetaGraph"
        elif len({part.tags for part in plan.parts}) != len(plan.parts):
            plan.problem = (
                "two of its MetaGraphs have the same tags; no loader can choose the second"
            )
    except SavedModelError as error:
        return ModelPlan(problem=message_of(error), fix=fix_of(str(error), type(error).__name__))
    return plan


def size_of(path: Path) -> int:
    """Bytes of all files of a model."""
    return sum(file.stat().st_size for file in files_of(path))
