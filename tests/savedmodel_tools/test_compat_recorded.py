"""What `compat` predicts through each loader, against what genuine runtimes of 1.4 to 2.21 did with
the same models.
"""

import pytest
import skew_models
from skew_models import recorded

from compat_matrix.cells.consumers import CONSUMERS
from reference_impl.format.container import layout
from savedmodel_tools.compat import EVERY_LOADER, of_model
from savedmodel_tools.skew.history import history

# Models that fail, or are read, for reasons that no op tells.
NOT_OF_OPS = ("newer_checkpoint", "op_version", "fixture_estimator_boosted_trees")
ROWS = [row for row in recorded() if row[1] not in NOT_OF_OPS]


@pytest.mark.parametrize("model", sorted({row[1] for row in ROWS}))
def test_the_reference_implementation_does_what_is_predicted(model, tmp_path):
    table = history()
    (graph,) = of_model(
        layout.read(skew_models.made(model, tmp_path)),
        range(len(table.releases)),
        table,
        EVERY_LOADER,
    )
    uses = {use.part: use for use in graph.uses if use.loader == CONSUMERS["reference"].loader}
    compared = 0
    for consumer, name, step, _, message, versions in ROWS:
        if (consumer, name) != ("reference", model):
            continue
        for version in versions:
            verdict = uses[step].verdicts[table.index(version)]
            assert verdict.loads is (message is None), (step, version, message, verdict.reasons)
            compared += 1
    assert compared


def test_a_kernel_to_restore_a_variable_has_no_place_in_the_graph(tmp_path):
    table = history()
    (graph,) = of_model(
        layout.read(skew_models.made("real_var_float8", tmp_path)),
        [table.index("2.14")],
        table,
        ("objects",),
    )
    reasons = {reason for use in graph.uses for reason in use.verdicts[table.index("2.14")].reasons}
    assert reasons and all(
        "'AssignVariableOp'" in reason and "dtype=float8" in reason for reason in reasons
    )
    assert not any("node" in reason for reason in reasons)
