"""Each rule by which `downgrade` rewrites, proved in the newest genuine release that lacks what it
takes out.

A model uses the op in all dtypes and forms that the rule is for; the copy is asked there, through
every loader that the release has, for today's answers. Runtimes are not installed by the tests:
those that are missing are skipped by name.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Optional

import pytest
from packaging.version import Version

from compat_matrix.exports import release_proof as prove
from reference_impl.format.container import layout
from savedmodel_tools.downgrade import attrs
from savedmodel_tools.downgrade import model as downgrading
from savedmodel_tools.downgrade.replace import REPLACEMENTS
from savedmodel_tools.skew import advice
from savedmodel_tools.skew.history import history

pytestmark = pytest.mark.tensorflow

FLOATS = ("float16", "float32", "float64")


def add(tf):
    for dtype in (*FLOATS, "int8", "int16", "uint8", "int32", "int64", "complex64", "complex128"):
        yield (
            dtype,
            lambda x, y: tf.raw_ops.AddV2(x=x, y=y),
            {"x": (dtype, [2, 1, 3]), "y": (dtype, [4, 1])},
        )


def products(tf, **more):
    for dtype in ("float32", "float64", "int32", "complex64", "complex128"):
        kind = getattr(tf, dtype)
        for name, (x, y), flags in (
            ("plain", ([2, 1, 3, 4], [5, 4, 2]), {}),
            ("adjoint", ([3, 4, 3], [3, 2, 4]), {"adj_x": True, "adj_y": True}),
        ):

            def product(x, y, kind=kind, flags=flags):
                return tf.raw_ops.BatchMatMulV3(x=x, y=y, Tout=kind, **flags, **more)

            yield f"{name}_{dtype}", product, {"x": (dtype, x), "y": (dtype, y)}


def marked_products(tf):
    yield from (
        (
            "a",
            lambda x, y: tf.raw_ops.MatMul(a=x, b=y, grad_a=True),
            {"x": ("float32", [2, 3]), "y": ("float32", [3, 2])},
        ),
        (
            "b",
            lambda x, y: tf.raw_ops.MatMul(a=x, b=y, grad_b=True),
            {"x": ("float64", [2, 3]), "y": ("float64", [3, 2])},
        ),
        (
            "both",
            lambda x, y: tf.raw_ops.BatchMatMulV2(x=x, y=y, grad_x=True, grad_y=True),
            {"x": ("float32", [2, 2, 3]), "y": ("float32", [3, 2])},
        ),
        (
            "old",
            lambda x, y: tf.raw_ops.BatchMatMul(x=x, y=y, grad_x=True, grad_y=True),
            {"x": ("float32", [2, 2, 3]), "y": ("float32", [2, 3, 2])},
        ),
    )


def batch_norm(tf):
    def normed(x, scale, offset, mean, variance):
        out = tf.raw_ops.FusedBatchNormV3(
            x=x,
            scale=scale,
            offset=offset,
            mean=mean,
            variance=variance,
            is_training=False,
            epsilon=0.01,
        )
        return out.y

    def trained(x, scale, offset):
        none = tf.constant([], tf.float32)
        out = tf.raw_ops.FusedBatchNormV3(
            x=x, scale=scale, offset=offset, mean=none, variance=none, epsilon=0.01
        )
        return {"y": out.y, "mean": out.batch_mean, "variance": out.batch_variance}

    vector = ("float32", [3])
    yield (
        "inference",
        normed,
        {
            "x": ("float32", [2, 2, 2, 3]),
            **dict.fromkeys(("scale", "offset", "mean", "variance"), vector),
        },
    )
    yield "training", trained, {"x": ("float32", [2, 2, 2, 3]), "scale": vector, "offset": vector}


def parsed(tf):
    def parse(examples):
        found = tf.io.parse_example(
            examples,
            {
                "dense": tf.io.FixedLenFeature([2], tf.float32, [0.5, 1.5]),
                "word": tf.io.FixedLenFeature([], tf.string, b"none"),
                "many": tf.io.VarLenFeature(tf.int64),
            },
        )
        many = found.pop("many")
        return {**found, "indices": many.indices, "values": many.values, "size": many.dense_shape}

    yield "parse", parse, {"examples": ("string", [None])}


def branches(tf, op):
    """Both branches are taken."""
    spec = [tf.TensorSpec([], tf.float32), tf.TensorSpec([3], tf.int32)]
    first = tf.function(lambda x, y: (x + 1.0, y * 2), input_signature=spec).get_concrete_function()
    second = tf.function(
        lambda x, y: (x * 3.0, y - 1), input_signature=spec
    ).get_concrete_function()
    types = [tf.float32, tf.int32]

    def choose(which, x, y):
        if op == "StatelessIf":
            out = tf.raw_ops.StatelessIf(
                cond=which > 0, input=[x, y], Tout=types, then_branch=first, else_branch=second
            )
        else:
            out = tf.raw_ops.StatelessCase(
                branch_index=which, input=[x, y], Tout=types, branches=[first, second]
            )
        return {"x": out[0], "y": out[1]}

    for value in (0, 1):
        yield (
            f"branch_{value}",
            lambda x, y, value=value: choose(tf.reduce_sum(y) * 0 + value, x, y),
            {"x": ("float32", []), "y": ("int32", [3])},
        )


def loop(tf):
    spec = [tf.TensorSpec([], tf.int32), tf.TensorSpec([2], tf.float32)]
    body = tf.function(
        lambda i, x: (i + 1, x * 2.0 + 1.0), input_signature=spec
    ).get_concrete_function()
    condition = tf.function(lambda i, x: i < 5, input_signature=spec).get_concrete_function()

    def run(start, x):
        out = tf.raw_ops.StatelessWhile(input=[start, x], cond=condition, body=body)
        return {"i": out[0], "x": out[1]}

    yield "loop", run, {"start": ("int32", []), "x": ("float32", [2])}


def segments(tf):
    for name in ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"):
        for dtype in ("float32", "float64"):
            op = getattr(tf.raw_ops, name)

            def run(data, op=op):
                return op(
                    data=data,
                    indices=tf.constant([0, 2, 1]),
                    segment_ids=tf.constant([0, 0, 1]),
                    sparse_gradient=True,
                )

            yield f"{name}_{dtype}", run, {"data": (dtype, [3, 2])}


def dataset(tf):
    def total(x):
        data = (
            tf.data.Dataset.from_tensor_slices(x, name="numbers")
            .map(lambda v: v * 2.0, name="twice")
            .batch(2, name="pairs")
        )
        return data.reduce(tf.constant(0.0), lambda a, b: a + tf.reduce_sum(b), name="total")

    yield "total", total, {"x": ("float32", [5])}


def convolution(tf):
    def run(x, kernel):
        return tf.raw_ops.Conv2D(
            input=x, filter=kernel, strides=[1, 1, 1, 1], padding="SAME", explicit_paddings=[]
        )

    yield "conv", run, {"x": ("float32", [1, 4, 4, 1]), "kernel": ("float32", [2, 2, 1, 2])}


def ragged(tf):
    def run(values):
        splits = tf.constant([0, 2, 2, 3], tf.int64)
        variant = tf.raw_ops.RaggedTensorToVariant(
            rt_nested_splits=[splits], rt_dense_values=values, batched_input=True
        )
        out = tf.raw_ops.RaggedTensorFromVariant(
            encoded_ragged=variant,
            input_ragged_rank=0,
            output_ragged_rank=1,
            Tvalues=tf.float32,
            Tsplits=tf.int64,
        )
        return {"splits": out.output_nested_splits[0], "values": out.output_dense_values}

    yield "ragged", run, {"values": ("float32", [3])}


def variable(tf):
    """Exported with an object graph: variables have names, are read and assigned."""
    weights = {
        dtype: tf.Variable(tf.cast([1, 2], dtype), name=f"w_{dtype}")
        for dtype in (*FLOATS, "int64")
    }

    def run(x, weight):
        tf.raw_ops.AssignVariableOp(resource=weight.handle, value=weight * 1, validate_shape=True)
        return x * weight

    for dtype, weight in weights.items():
        yield dtype, lambda x, weight=weight: run(x, weight), {"x": (dtype, [2])}


@dataclass(frozen=True)
class Rule:
    """``changes`` are looked for in the plan: kind, op and words. ``forms``: how the model is
    exported; ``stripped``: without attrs at their default."""

    target: str
    build: Callable[[Any], Any]
    changes: tuple[tuple[str, str, str], ...]
    forms: tuple[str, ...] = ("graph", "module")
    stripped: bool = False
    since: str = ""  # the first TensorFlow that writes it


def replaced(op):
    return (("replace_op", op, f"'{op}' replaced by '{REPLACEMENTS[op].op}'"),)


def dropped(*pairs):
    return tuple(("drop_attr", op, f"attr '{name}' of '{op}' dropped") for op, name in pairs)


MARKED = [
    ("MatMul", "grad_a"),
    ("MatMul", "grad_b"),
    ("BatchMatMulV2", "grad_x"),
    ("BatchMatMulV2", "grad_y"),
]
RULES = {
    "AddV2": Rule("1.4", add, replaced("AddV2"), ("graph",)),
    "StatelessIf": Rule(
        "1.8", lambda tf: branches(tf, "StatelessIf"), replaced("StatelessIf"), ("graph",)
    ),
    "StatelessWhile": Rule("1.8", loop, replaced("StatelessWhile"), ("graph",)),
    "config_proto": Rule(
        "1.12",
        convolution,
        dropped(("StatefulPartitionedCall", "config_proto"), ("PartitionedCall", "config_proto")),
        ("module",),
    ),
    "FusedBatchNormV3": Rule("1.13", batch_norm, replaced("FusedBatchNormV3"), ("graph",)),
    "default": Rule("1.13", convolution, dropped(("Conv2D", "explicit_paddings")), ("graph",)),
    "ParseExampleV2": Rule("2.0", parsed, replaced("ParseExampleV2")),
    "no default": Rule(
        "2.0",
        ragged,
        tuple(("add_attr", f"RaggedTensor{way}Variant", "Tsplits") for way in ("To", "From")),
        stripped=True,
    ),
    "StatelessCase": Rule(
        "2.3", lambda tf: branches(tf, "StatelessCase"), replaced("StatelessCase")
    ),
    "grad": Rule(
        "2.4",
        marked_products,
        dropped(*MARKED, ("BatchMatMul", "grad_x"), ("BatchMatMul", "grad_y")),
        since="2.16",
    ),
    "sparse_gradient": Rule(
        "2.4",
        segments,
        dropped(
            *((f"SparseSegment{kind}", "sparse_gradient") for kind in ("Sum", "Mean", "SqrtN"))
        ),
        since="2.15",
    ),
    "metadata": Rule(
        "2.4", dataset, dropped(("TensorSliceDataset", "metadata"), ("MapDataset", "metadata"))
    ),
    "variables": Rule(
        "2.4",
        variable,
        dropped(("VarHandleOp", "debug_name"), ("AssignVariableOp", "validate_shape")),
        ("module",),
        since="2.15",
    ),
    "BatchMatMulV3": Rule("2.5", products, replaced("BatchMatMulV3")),
    "grad of BatchMatMulV3": Rule(
        "2.9",
        lambda tf: products(tf, grad_x=True, grad_y=True),
        dropped(("BatchMatMulV3", "grad_x"), ("BatchMatMulV3", "grad_y")),
        ("module",),
        since="2.16",
    ),
    "DisableCopyOnRead": Rule(
        "2.9",
        variable,
        (("drop_node", "DisableCopyOnRead", "node 'DisableCopyOnRead' dropped"),),
        ("module",),
    ),
}


# Handles that a function makes and hands out: the newest importer that reads freed memory there is
# that of 2.2.
HANDLES = "2.2"


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


class Provers:
    """One at a time: the tests are in order of their releases."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.release, self.prover = folder, "", None
        self.stack = contextlib.ExitStack()

    def of(self, release: str) -> prove.Prover:
        if release != self.release:
            self.stack.close()
            self.release = release
            self.prover = self.stack.enter_context(
                prove.Prover(release, prove.READERS, self.folder / release)
            )
        return self.prover


@pytest.fixture(scope="module")
def provers(tmp_path_factory):
    found = Provers(tmp_path_factory.mktemp("provers"))
    yield found
    found.stack.close()


def as_graph(tf, rule, path):
    with tf.Graph().as_default() as graph, tf.compat.v1.Session(graph=graph) as session:
        signatures = {}
        for number, (name, function, inputs) in enumerate(rule.build(tf)):
            fed = {
                key: tf.compat.v1.placeholder(dtype, shape, f"{key}_{number}")
                for key, (dtype, shape) in inputs.items()
            }
            signatures[name] = tf.compat.v1.saved_model.predict_signature_def(
                fed, named(tf, function(**fed))
            )
        builder = tf.compat.v1.saved_model.Builder(str(path))
        builder.add_meta_graph_and_variables(
            session, ["serve"], signatures, strip_default_attrs=rule.stripped
        )
        builder.save()


def as_module(tf, rule, path):
    module, signatures = tf.Module(), {}
    for name, function, inputs in rule.build(tf):
        specs = {
            key: tf.TensorSpec(shape, dtype, name=key) for key, (dtype, shape) in inputs.items()
        }
        call = tf.function(lambda function=function, **fed: named(tf, function(**fed)))
        signatures[name] = call.get_concrete_function(**specs)
        cells = [cell.cell_contents for cell in function.__closure__ or ()] + list(
            function.__defaults__ or ()
        )
        setattr(
            module, f"kept_{name}", [value for value in cells if isinstance(value, tf.Variable)]
        )
    tf.saved_model.save(module, str(path), signatures)


def named(tf, result):
    return {
        key: tf.identity(value)
        for key, value in (result if isinstance(result, dict) else {"out": result}).items()
    }


def order(item):
    return history().index(item[1].target), item[0], item[2]


CASES = sorted(
    ((name, rule, form) for name, rule in RULES.items() for form in rule.forms), key=order
)


@pytest.mark.parametrize(
    ("name", "rule", "form"),
    CASES,
    ids=[f"{name}-{form}-{rule.target}" for name, rule, form in CASES],
)
def test_rule_in_the_newest_release_that_lacks_it(name, rule, form, tf, provers, tmp_path):
    if rule.since and Version(tf.__version__) < Version(rule.since):
        pytest.skip(f"TensorFlow writes it since {rule.since}, this one is {tf.__version__}")
    model = tmp_path / "model"
    {"graph": as_graph, "module": as_module}[form](tf, rule, model)
    table = history()
    index = table.index(rule.target)
    prover = provers.of(rule.target)
    loaders = [
        loader
        for loader, reader in prove.READER_OF.items()
        if prover.runtime is None or reader in prover.readers
    ]
    plan = downgrading.plan(layout.read(model), index, loaders)
    assert not plan.refused
    for kind, op, words in rule.changes:
        assert any(
            change.kind == kind and change.op == op and words in change.what
            for change, _ in plan.changes
        ), (
            op,
            plan.changes,
        )
    if prover.runtime is None:
        pytest.skip(f"the proof needs another runtime: {prover.trouble}")
    proofs: list[Optional[prove.Proof]] = [None]
    downgrading.write(
        layout.read(model),
        plan,
        tmp_path / "old",
        lambda stage: proofs.__setitem__(0, prover.prove(model, stage)),
    )
    proof = proofs[0]
    assert proof is not None and proof.status == prove.PROVED, proof
    asked = len(list(rule.build(tf)))
    assert proof.left_out == ()
    assert [line.split(" of ")[0] for line in proof.lines] == prover.readers
    assert all(f": {asked} answers as recorded" in line for line in proof.lines), proof.lines


def next_release(target):
    table = history()
    return table.releases[table.index(target) + 1].name


def later(item):
    return history().index(next_release(item[1].target)), item[0], item[2]


@pytest.mark.parametrize(
    ("name", "rule", "form"),
    CASES,
    ids=[f"{name}-{form}-{rule.target}" for name, rule, form in CASES],
)
def test_the_newest_release_that_lacks_it_refuses_the_model_as_it_is(
    name, rule, form, tf, provers, tmp_path
):
    """One side of the boundary: the rule is needed.

    Only an attr of an op that is newer than 2.5 is passed over everywhere.
    """
    if rule.since and Version(tf.__version__) < Version(rule.since):
        pytest.skip(f"TensorFlow writes it since {rule.since}, this one is {tf.__version__}")
    {"graph": as_graph, "module": as_module}[form](tf, rule, tmp_path / "model")
    prover = provers.of(rule.target)
    if prover.runtime is None:
        pytest.skip(f"the proof needs another runtime: {prover.trouble}")
    passed_over = history().index(rule.target) >= history().index(attrs.IGNORED_SINCE)
    passed_over = passed_over and all(kind == "drop_attr" for kind, _, _ in rule.changes)
    proof = prover.prove(tmp_path / "model", tmp_path / "model")
    assert proof.status == (prove.PROVED if passed_over else prove.FAILED), proof


@pytest.mark.parametrize(
    ("name", "rule", "form"),
    sorted(CASES, key=later),
    ids=[
        f"{name}-{form}-{next_release(rule.target)}"
        for name, rule, form in sorted(CASES, key=later)
    ],
)
def test_the_release_after_it_needs_no_such_rule(
    name, rule, form, tf, provers, tmp_path, monkeypatch
):
    """The other side of the boundary: what the rule takes out stays in, and the release answers."""
    if rule.since and Version(tf.__version__) < Version(rule.since):
        pytest.skip(f"TensorFlow writes it since {rule.since}, this one is {tf.__version__}")
    model, release = tmp_path / "model", next_release(rule.target)
    {"graph": as_graph, "module": as_module}[form](tf, rule, model)
    prover = provers.of(release)
    if prover.runtime is None:
        pytest.skip(f"the proof needs another runtime: {prover.trouble}")
    table, index = history(), history().index(release)
    if index >= table.index(
        attrs.IGNORED_SINCE
    ):  # attrs that such a release does not know may stay: it passes over them
        monkeypatch.setattr(attrs, "fit", lambda *_: iter(()))
    loaders = [loader for loader, reader in prove.READER_OF.items() if reader in prover.readers]
    plan = downgrading.plan(layout.read(model), index, loaders)
    for kind, op, words in rule.changes:
        assert not any(
            change.kind == kind and change.op == op and words in change.what
            for change, _ in plan.changes
        ), op
    found = []
    downgrading.write(
        layout.read(model),
        plan,
        tmp_path / "same",
        lambda stage: found.append(prover.prove(model, stage)),
    )
    (proof,) = found
    assert proof.status == prove.PROVED, proof
    asked = len(list(rule.build(tf)))
    assert all(f": {asked} answers as recorded" in line for line in proof.lines), proof.lines


def test_handles_of_functions_are_made_by_the_main_graph(tf, tmp_path):
    """Only sessions are asked: the object loader of this release loses the content of tables."""
    model = tf.Module()
    model.table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, -1.0)
    model.table.insert(tf.constant([0, 1], tf.int64), tf.constant([5.0, 7.0]))
    model.f = tf.function(
        lambda keys: {"out": model.table.lookup(keys)}, [tf.TensorSpec([4], tf.int64)]
    )
    for generation in range(2):
        tf.saved_model.save(model, str(tmp_path / f"{generation}"), {"lookup": model.f})
        model = tf.saved_model.load(str(tmp_path / f"{generation}"))
    plan = downgrading.plan(
        layout.read(tmp_path / "1"), history().index(HANDLES), ["session", "c++"]
    )
    assert not plan.refused and any("'MutableHashTableV2'" in one.what for one, _ in plan.changes)
    source, readers = tmp_path / "1", ("v1_session", "c_api")
    with prove.Prover(HANDLES, readers, tmp_path / "prover") as prover:
        if prover.runtime is None:
            pytest.skip(f"the proof needs another runtime: {prover.trouble}")
        found = []
        downgrading.write(
            layout.read(source),
            plan,
            tmp_path / "old",
            lambda stage: found.append(prover.prove(source, stage)),
        )
    (proof,) = found
    assert proof.status == prove.PROVED, proof
    assert [line.partition(": ")[2] for line in proof.lines] == ["1 answers as recorded"] * len(
        readers
    )


def test_every_rule_is_among_them():
    found = {(kind, op) for rule in RULES.values() for kind, op, _ in rule.changes}
    assert {op for kind, op in found if kind == "replace_op"} == set(REPLACEMENTS)
    assert {op for kind, op in found if kind == "drop_node"} == set(advice.IDLE_OPS)
    words = " ".join(words for rule in RULES.values() for _, _, words in rule.changes)
    for op, attr in (*attrs.IDLE, *advice.IDLE_ATTRS):
        assert f"attr '{attr}' of '{op}'" in words, (op, attr)


def test_a_product_with_another_output_is_refused(tf, tmp_path):
    def mixed(tf):
        yield (
            "mixed",
            lambda x, y: tf.raw_ops.BatchMatMulV3(x=x, y=y, Tout=tf.int32),
            {"x": ("int8", [2, 2, 2]), "y": ("int8", [2, 2, 2])},
        )

    as_graph(tf, Rule("2.5", mixed, ()), tmp_path / "model")
    plan = downgrading.plan(layout.read(tmp_path / "model"), history().index("2.5"))
    ((reason, loaders),) = plan.refused
    assert "lacks op 'BatchMatMulV3'" in reason and "it becomes BatchMatMulV2" in reason
    assert loaders == ("session", "c++", "objects")
