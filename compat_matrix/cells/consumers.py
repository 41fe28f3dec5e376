"""Consumers: who loads an artifact, with which worker program, and what it can be asked.

A consumer is data. What it does stands in its program in ``compat_matrix/workers``, which runs inside a runtime.
Capabilities (docs/contracts.md, section 5): ``functions`` calls on the object graph; ``resave`` writes what it loaded;
``variables`` names the values it holds; ``describe`` says what
variables and functions are and changes variables; ``fetch`` reads tensors of the main graph; ``tags`` can choose a MetaGraph.
A plan decides by them, before anything runs, which cells are NOT_APPLICABLE.

Model servers are consumers as well (:attr:`compat_matrix.cells.plan.Cell.is_served`), but no program of ours:
:mod:`compat_matrix.serving`. Those of other people come from :mod:`compat_matrix.plugins`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from compat_matrix.runtimes.programs import Program

CPP = "cpp"


@dataclass(frozen=True)
class Consumer:
    """One way to read a SavedModel.

    ``program`` is a name of ours (``runtimes.programs.of``) or a whole Program; ``checks`` the only ones to plan (None: all).
    ``version`` is what stands in cell ids; None, where it is the TensorFlow of the runtime that is asked: then every runtime is.
    ``tolerance``: (rtol, atol, reason) of one that computes in its own way, whatever less an artifact allows.
    """

    name: str
    program: str | Program
    capabilities: frozenset[str]
    summary: str
    checks: frozenset[str] | None = None
    version: str | None = None
    tolerance: tuple[float, float, str] | None = None


def _table(*consumers: Consumer) -> dict[str, Consumer]:
    return {consumer.name: consumer for consumer in consumers}


CONSUMERS = _table(
    Consumer(
        "tf2",
        "tf2_worker",
        frozenset({"describe", "functions", "resave", "variables", "tags"}),
        "tf.saved_model.load, eager",
    ),
    Consumer(
        "v1_session", "v1_session_worker", frozenset({"resave", "fetch", "tags"}), "tf.compat.v1.saved_model.loader in a Session"
    ),
    Consumer(
        "c_api", "c_api_worker", frozenset({"fetch", "tags"}), "TF_LoadSessionFromSavedModel: the loader of Serving, Go and Java"
    ),
    Consumer(
        CPP,
        "cpp_worker",
        frozenset({"fetch", "tags"}),
        "tensorflow::LoadSavedModel and Session::Run, in a C++ program built against the wheel",
    ),
    Consumer(
        "reference",
        "reference_worker",
        frozenset({"describe", "functions", "resave", "variables", "tags"}),
        "reference_impl.load of this project",
    ),
    # One implementation on either side of a re-export. What they answer before it is asked of the two above.
    Consumer(
        "reference_to_tf2",
        "reference_to_tf2_worker",
        frozenset({"describe", "functions", "resave", "variables", "tags"}),
        "reference_impl.load, saved again by tf.saved_model.save",
        checks=frozenset({"reexport"}),
    ),
    Consumer(
        "tf2_to_reference",
        "tf2_to_reference_worker",
        frozenset({"describe", "functions", "resave", "variables", "tags"}),
        "tf.saved_model.load, saved again by reference_impl.save",
        checks=frozenset({"reexport"}),
    ),
)
