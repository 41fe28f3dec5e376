"""What a model holds before and after load and save: tags, signatures, variables with values,
assets, tables, the object tree.

Answers alone do not show a signature, a variable or a table entry that was lost and that no request
asks for (V1-17, RES-15).
"""

from __future__ import annotations

import copy
import warnings
from pathlib import Path
from typing import Any

import inventory
import model_edits
import pytest
from packaging.requirements import Requirement

import reference_impl
from compat_matrix.cases import CASES_DIR, read_case
from compat_matrix.workers import producing
from reference_impl.format.container import layout

pytestmark = pytest.mark.tensorflow

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"
CASES = (
    "asset_same_name",
    "fn_closure_changed",
    "fn_custom_gradient",
    "fn_namedtuples",
    "fn_ragged",
    "fn_relaxed_shapes",
    "op_dataset_captured",
    "optimizer_v1_adam",
    "resource_after_restore",
    "rfc_has_fns",
    "rfc_table_resource",
    "save_options_tags",
    "sig_composite_outputs",
    "sig_defaults",
    "sig_odd_names",
    "sig_unused",
    "state_generator",
    "state_train_step",
    "table_dense",
    "table_files",
    "table_mutable",
    "tree_aliases_and_cycles",
    "tree_containers",
    "tree_odd_names",
    "tree_tuples",
    "var_attributes",
    "var_dtypes",
    "var_shapes",
)


def meta_graphs() -> list[Any]:
    found = []
    for path in sorted(FIXTURES.glob("*/model")):
        for meta_graph in layout.read(path).saved_model.meta_graphs:
            tags = tuple(sorted(meta_graph.meta_info_def.tags))
            found.append(pytest.param(path, tags, id="-".join([path.parent.name, *tags])))
    return found


@pytest.fixture(scope="module")
def tf() -> Any:
    import tensorflow

    return tensorflow


def lost(tf: Any, path: Path, tags: tuple[str, ...], target: Path, converted: bool) -> Any:
    """What a model lacks after load and save."""
    meta_graph = layout.read(path).meta_graph(tags)
    complete = all(asset.exists for asset in layout.read(path).assets(meta_graph))
    with warnings.catch_warnings():
        warnings.simplefilter("error" if complete else "ignore", UserWarning)
        root = reference_impl.load(path, tags)
        options = reference_impl.SaveOptions(extra_tags=tags, strict=complete)
        reference_impl.save(root, target, options=options)
    found = inventory.compare(inventory.of(path, tags), inventory.of(target), converted)
    if found is None and has_tables(meta_graph):
        found = inventory.compare_tables(
            inventory.tables(path, list(tags)), inventory.tables(target, sorted({"serve", *tags}))
        )
    return found


def has_tables(meta_graph: Any) -> bool:
    library = meta_graph.graph_def.library.function
    nodes = [
        *meta_graph.graph_def.node,
        *(node for function in library for node in function.node_def),
    ]
    return any(node.op.startswith(inventory.TABLE_OPS) for node in nodes)


REFUSED = {
    "dtypes_reference": "No OpKernel was registered",  # of variables of these types
    "dtypes_removed_kernels": "No OpKernel was registered",
    "estimator_boosted_trees": "No OpKernel was registered",
    "untracked_vocabulary": "vocabulary.txt",  # the model is incomplete
}  # what no TensorFlow of today can load

CORRECTED = {
    "false_input_shape": (
        "signature serving_default: inputs {'x': ('float32', (None, 7))}: {'x': ('float32',"
        " (None,))}"
    ),
    "false_output_shape": (
        "signature serving_default: outputs {'y': ('float32', (4,))}: {'y': ('float32', (2, 3))}"
    ),
    # SignatureDefs that the graph contradicts: the graph is followed, and the copy says what it
    # says (V1-01)
}


@pytest.mark.clause("V1-16", "V1-17", "RES-15")
@pytest.mark.parametrize(("path", "tags"), meta_graphs())
def test_a_model_of_tf_1_keeps_all_it_has(tf, path, tags, tmp_path):
    if path.parent.name in REFUSED:
        with pytest.raises(Exception, match=REFUSED[path.parent.name]):
            reference_impl.load(path, tags)
        return
    assert lost(tf, path, tags, tmp_path / "again", converted=True) == CORRECTED.get(
        path.parent.name
    )


@pytest.mark.clause("RES-15", "PRIM-06")
@pytest.mark.parametrize("name", CASES)
def test_a_model_of_tf_2_keeps_all_it_has(tf, name, tmp_path):
    (tmp_path / "case").mkdir()
    (tmp_path / "scratch").mkdir()
    case = CASES_DIR / f"{name}.py"
    requirement = read_case(case).requires
    if requirement and tf.__version__ not in Requirement(requirement).specifier:
        pytest.skip(f"the case requires {requirement}")
    producing.produce(
        str(case), str(tmp_path / "case"), str(tmp_path / "scratch"), tf.saved_model.save
    )
    path = tmp_path / "case" / "model"
    (meta_graph,) = layout.read(path).saved_model.meta_graphs
    assert (
        lost(tf, path, tuple(meta_graph.meta_info_def.tags), tmp_path / "again", converted=False)
        is None
    )


def drop_signature(path: Path) -> None:
    message = layout.read(path).saved_model
    del message.meta_graphs[0].signature_def["serving_default"]
    model_edits.write(message, path)


def drop_asset(path: Path) -> None:
    for file in (path / "assets").iterdir():
        file.unlink()


def drop_table_entry(path: Path) -> None:
    for file in (path / "assets").iterdir():
        file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))


@pytest.mark.parametrize("edit", [drop_signature, drop_asset, drop_table_entry])
def test_what_is_lost_is_found(tf, edit, tmp_path):
    original, target = FIXTURES / "index_table_oov" / "model", tmp_path / "again"
    reference_impl.save(reference_impl.load(original), target)
    before = inventory.of(original)
    tables = inventory.tables(original, ["serve"])
    assert tables
    assert tables[0][2]
    assert inventory.compare(before, inventory.of(target), converted=True) is None
    edit(target)
    assert inventory.compare(before, inventory.of(target), converted=True) is not None
    if edit is drop_table_entry:
        assert inventory.compare_tables(tables, inventory.tables(target, ["serve"])) is not None


@pytest.fixture(scope="module")
def full(tf: Any, tmp_path_factory: Any) -> dict[str, Any]:
    """The inventory of a model that has something of everything."""
    module = tf.Module()
    module.part = tf.Module()
    module.part.weight = tf.Variable(
        1.0,
        aggregation=tf.VariableAggregation.SUM,
        synchronization=tf.VariableSynchronization.ON_READ,
    )
    spec = [tf.TensorSpec([], name="x")]
    two = tf.constant(2.0)
    module.part.f = tf.function(lambda x=two: x * module.part.weight, input_signature=spec)
    (tmp_path_factory.getbasetemp() / "note").write_text("note")
    options = reference_impl.SaveOptions(
        function_aliases={"alias": module.part.f},
        extra_assets={"note": tmp_path_factory.getbasetemp() / "note"},
    )
    path = tmp_path_factory.mktemp("full") / "model"
    reference_impl.save(module, path, module.part.f, options=options)
    return inventory.of(path)


LOSSES = {
    "signature": lambda found: found["signatures"].popitem(),
    "default": lambda found: found["defaults"].pop(),
    "alias": lambda found: found["aliases"].clear(),
    "file": lambda found: found["extra"].clear(),
    "variable": lambda found: found["variables"].popitem(),
    "child": lambda found: [children.pop("weight", None) for children, _ in found["tree"]],
    "attributes of a variable": lambda found: found.update(
        nodes=[item[:3] for item in found["nodes"]]
    ),
    "nodes of a function": lambda found: [
        body.discard(item)
        for body in found["bodies"].values()
        for item in sorted(body, key=str)
        if item[0] == "node"
    ],
}


@pytest.mark.parametrize("loss", LOSSES)
def test_each_part_of_an_inventory_is_compared(full, loss):
    other = copy.deepcopy(full)
    assert inventory.compare(full, other, converted=False) is None
    LOSSES[loss](other)
    assert inventory.compare(full, other, converted=False) is not None
