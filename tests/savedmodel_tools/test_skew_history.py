"""The op history: the committed table, its lookups, and whether it is what the TensorFlow installed
here registers.
"""

import json

import pytest

from compat_matrix.hosts import op_tables
from reference_impl.format import schema
from reference_impl.format.values.dtypes import by_name
from savedmodel_tools.skew import advice, contrib, spans
from savedmodel_tools.skew.changes import changes
from savedmodel_tools.skew.history import (
    TABLE,
    History,
    TableError,
    history,
)
from savedmodel_tools.skew.protos import kernels_of
from savedmodel_tools.skew.records import Attr, Op, Release
from savedmodel_tools.skew.table import encode, products

LINES = TABLE.read_text(encoding="utf-8").splitlines()


def test_the_table_names_the_releases_in_order_and_the_ops_sorted():
    table = history()
    names = [release.name for release in table.releases]
    assert names[:6] == ["1.4", "1.8", "1.12", "1.13", "1.14", "1.15"]
    assert names[6:] == [f"2.{minor}" for minor in range(22)]
    assert [release.tensorflow.rpartition(".")[0] for release in table.releases] == names
    assert list(table.names) == sorted(set(table.names)) and len(table.names) > 2000
    assert TABLE.stat().st_size < 2_000_000
    assert all(line.startswith('{"op":"') for line in LINES[1:])


def test_graph_versions_are_those_of_the_releases():
    producers = {release.name: release.producer for release in history().releases}
    assert (producers["1.4"], producers["1.15"], producers["2.0"], producers["2.21"]) == (
        24,
        134,
        119,
        2474,
    )
    assert {release.min_consumer for release in history().releases} == {0}


@pytest.mark.parametrize(
    ("op", "since", "until"),
    [
        ("MatMul", "1.4", None),
        ("StatefulPartitionedCall", "1.12", None),
        ("DisableCopyOnRead", "2.10", None),
        ("ParseExampleV2", "2.1", None),
        ("Resampler", "1.4", "1.15"),
        ("CompareAndBitpack", "1.4", "2.5"),
    ],
)
def test_since_and_until(op, since, until):
    found = history().op(op)
    assert (found.since, found.until) == (since, until)


def test_attrs_values_kernels_dtypes_and_libraries_have_their_own_spans():
    table = history()
    assert table.since(table.op("VarHandleOp").attr_members("debug_name")) == "2.15"
    matmul = table.op("MatMul")
    allowed = {
        release.name: matmul.definition(index).attr("T").allowed
        for index, release in enumerate(table.releases)
    }
    assert "uint8" not in allowed["2.11"] and "uint8" in allowed["2.12"]
    assign = table.op("AssignVariableOp")
    takes = {
        table.releases[index].name: (("dtype", "float8_e5m2"),) in assign.at(index).kernels
        for index in (18, 20, 21)
    }
    assert takes == {"2.12": False, "2.14": False, "2.15": True}
    assert table.text(table.dtypes["int4"]) == "2.15-"
    rnn = table.op("BlockLSTM")
    assert (rnn.library(0), rnn.library(1)) == ("contrib/rnn/python/ops/_lstm_ops.so", "")
    assert table.op("BatchNormWithGlobalNormalization").deprecated(0) == (
        9,
        "Use tf.nn.batch_normalization()",
    )


def test_an_attr_that_lived_less_long_than_its_op_is_absent_elsewhere():
    op = history().op("XlaCallModule")
    assert op.definition(op.members[0]).attr("platforms") is None
    assert op.definition(op.members[-1]).attr("platforms").default == []


def test_where_releases_between_two_were_not_asked_the_table_says_so():
    table = history()
    assert table.gap(table.op("StatefulPartitionedCall").members) == "1.8"
    assert table.gap(table.op("DisableCopyOnRead").members) is None
    assert table.gap(table.op("MatMul").members) is None


def test_versions_find_their_release():
    table = history()
    assert table.index("2.15.1") == table.index("2.15") == table.index("2.15.0rc1+candidate")
    assert table.index("1.5.0") is None and table.nearest("1.5.0") == 0
    assert table.index("2.99.0") is None and table.nearest("2.99.0") == len(table.releases) - 1
    assert table.index("nonsense") is None and table.nearest("nonsense") is None


def test_the_table_is_written_again_as_it_is():
    table = history()
    chosen = {line for number, line in enumerate(LINES) if number % 7 == 1} | {LINES[0]}
    small = History("\n".join(line for line in LINES if line in chosen) + "\n")
    written = encode(
        [(release, small.snapshot(index)) for index, release in enumerate(table.releases)]
    )
    kept = [line for line in LINES[1:] if line in chosen]
    assert written.splitlines()[1:] == kept
    assert json.loads(written.splitlines()[0]) == json.loads(LINES[0])


def release(name, **fields):
    return Release(
        name,
        f"{name}.0",
        fields.pop("producer", 1),
        0,
        fields.pop("has_kernels", True),
        ("float32",),
    )


def op(name="Op", **fields):
    made = {
        "signature": "->",
        "attrs": (),
        "stateful": False,
        "deprecated": None,
        "library": "",
        "kernels": frozenset(),
    }
    return Op(name, **{**made, **fields})


def test_what_varies_keeps_its_value_of_each_release():
    attr = Attr("T", "type", None, ("float32",), None)
    wide = Attr("T", "type", "float32", ("float32", "int8"), 2)
    kernel = (("T", "float32"),)
    snapshots = [
        (
            release("1.0", has_kernels=False),
            {"Op": op(attrs=(attr,), kernels=None), "Gone": op("Gone", kernels=None)},
        ),
        (
            release("1.1"),
            {"Op": op(attrs=(wide,), deprecated=(7, "no"), kernels=frozenset({kernel}))},
        ),
        (
            release("2.0"),
            {"Op": op(stateful=True, signature="a: T ->", library="contrib/x.so", kernels=None)},
        ),
    ]
    table = History(encode(snapshots))
    assert [table.snapshot(index) for index in range(3)] == [snapshot for _, snapshot in snapshots]
    assert table.releases == tuple(release for release, _ in snapshots)


def test_a_release_that_changes_nothing_changes_no_line():
    before = encode(
        [(release("1.0"), {"Op": op()}), (release("1.1"), {"Op": op(), "New": op("New")})]
    )
    after = encode(
        [
            (release(name), {"Op": op(), **({"New": op("New")} if name != "1.0" else {})})
            for name in ("1.0", "1.1", "1.2")
        ]
    )
    assert before.splitlines()[1:] == after.splitlines()[1:]


def test_spans():
    names = ["1.4", "1.8", "2.0", "2.1", "2.2"]
    for members in ((0,), (4,), (0, 1, 2, 3, 4), (1, 2, 4), (0, 2, 3), ()):
        assert spans.from_text(spans.to_text(members, names), names) == frozenset(members)
    assert spans.to_text((1, 2, 4), names) == "1.8-2.0,2.2-"
    assert spans.to_text((1, 3), names) == "1.8,2.1"
    with pytest.raises(ValueError, match=r"9\.9"):
        spans.from_text("9.9-", names)


def test_kernels_are_multiplied_out_to_what_they_were():
    kernels = {(("A", a), ("B", b)) for a in "xyz" for b in "pq"} | {
        (("A", "w"), ("B", "p")),
        (),
        (("C", "c"),),
    }
    found = products(kernels)
    assert len(found) == 4
    again = set()
    for product in found:
        combinations = [()]
        for attr, dtypes in product.items():
            combinations = [(*known, (attr, dtype)) for known in combinations for dtype in dtypes]
        again.update(combinations)
    assert again == kernels


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        '{"schema":2,"releases":[],"dtypes":{}}',
        "[]",
        '{"schema":1,"releases":[1],"dtypes":{}}',
    ],
)
def test_what_is_no_table_is_refused(text):
    with pytest.raises(TableError, match="op history"):
        History(text)


def test_changes_between_two_releases():
    table = history()
    found = {
        (change.op, change.kind)
        for change in changes(table, table.index("2.15"), table.index("2.16"))
    }
    assert ("MatMul", "attr added") in found
    back = {
        (change.op, change.kind)
        for change in changes(table, table.index("2.16"), table.index("2.15"))
    }
    assert ("MatMul", "attr removed") in back
    assert changes(table, 5, 5) == []


def test_every_replacement_is_of_an_op_that_is_gone_and_leads_to_one_that_is_there():
    table = history()
    newest = len(table.releases) - 1
    for name, instead in contrib._LISTED.items():
        op = table.op(name)
        assert op is not None, name
        last = op.members[-1]
        assert last != newest or instead.op == name, f"{name} is still there"
        if instead.op and not instead.package:
            core = table.op(instead.op)
            assert core is not None and newest in core.members, instead.op


def test_every_op_that_only_contrib_had_says_what_to_do():
    table = history()
    libraries = {name: table.op(name).library(table.op(name).members[-1]) for name in table.names}
    of_contrib = {
        name: library for name, library in libraries.items() if library.startswith("contrib/")
    }
    assert of_contrib
    for name, library in of_contrib.items():
        assert contrib.replacement(name, library) is not None, name


def told(op, table):
    """The releases that have the op in their core library and tell its kernels."""
    return [
        index for index in op.members if table.releases[index].has_kernels and not op.library(index)
    ]


# Kernels that a later release really does not have. All else that seems to vanish is a defect of
# the collector.
DROPPED = {
    "2.9": (
        "BoostedTrees",
        "IsBoostedTrees",
    ),  # TensorFlow stopped to train boosted trees: the ops stayed, so that old graphs can be read
    "1.15": "FilterByLastComponentDataset",
    "1.14": ("Experimental", "TensorListPushBackBatch"),
    "2.0": "Abs",  # 1.15.5 has newer kernels than 2.0, which branched earlier
    "2.6": "QuantizedConcatV2",  # of qint32
}


def test_a_kernel_stays_as_long_as_its_op():
    table = history()
    lost = {}
    for name in table.names:
        op = table.op(name)
        releases = told(op, table)
        for before, after in zip(releases, releases[1:]):
            gone = {
                kernel
                for kernel in set(op.kernels(before)) - set(op.kernels(after))
                if not advice.has_kernel(op, after, {attr: (value,) for attr, value in kernel})
            }
            gone = set() if name in UNUSABLE else gone
            if gone and not name.startswith(DROPPED.get(table.releases[after].name, ("no op",))):
                lost[name, table.releases[after].name] = sorted(gone)[:3]
    assert lost == {}


# TensorFlow refuses these nodes: "OpKernel 'TopK' has constraint on attr 'index_type' not in
# NodeDef". TopKV2 has that attr.
UNUSABLE = {"TopK", "TileGrad"}


def test_a_kernel_is_told_of_releases_that_have_the_op_and_constrains_its_attrs():
    table = history()
    assert table.names
    for name in table.names:
        op = table.op(name)
        releases = told(op, table)
        for members, products_ in op.kernel_spans():
            assert set(members) <= set(releases), name
            for index in members:
                known = {attr.name: attr for attr in op.definition(index).attrs}
                for product in products_:
                    assert set(product) <= set(known) or name in UNUSABLE, (
                        name,
                        table.releases[index].name,
                    )
                    for attr, values in product.items():
                        if attr not in known:
                            continue
                        if known[attr].type not in ("type", "list(type)"):
                            allowed = known[attr].allowed
                            assert allowed is None or set(values) <= set(allowed), (name, attr)
                        else:
                            assert set(values) <= set(table.dtypes), (name, attr)


def test_an_op_that_has_gone_does_not_come_back():
    """But for the ops of datasets that 1.13 and 1.14 called Experimental, a few of 1.15 that 2.0
    does not have, and contrib's.
    """
    table = history()
    assert table.names
    for name in table.names:
        op = table.op(name)
        gap = {
            table.releases[index].name
            for index in range(op.members[0], op.members[-1])
            if index not in op.members
        }
        moved = (
            {"1.12", "1.13", "1.14"}
            if name.endswith(("Dataset", "Handle", "Summary", "TFRecord", "GetDevice"))
            else set()
        )
        moved = {"2.1"} if name == "ImageProjectiveTransformV2" else moved
        assert gap <= {"2.0"} | moved or name.startswith("_Mkl"), (name, op.span)


def kernel_list(*kernels):
    """A serialized KernelList: (op, device, {attr: values}) each."""

    def field(number, data):
        assert len(data) < 128
        return bytes([number << 3 | 2, len(data)]) + data

    out = b""
    for op_name, device, constraints in kernels:
        data = field(1, op_name.encode()) + field(2, device.encode())
        for attr, values in constraints.items():
            listed = schema.AttrValue()
            listed.list.SetInParent()
            for value in values:
                kind = {str: "type", bytes: "s", int: "i", bool: "b", float: "f"}[type(value)]
                getattr(listed.list, kind).append(
                    by_name(value).number if kind == "type" else value
                )
            data += field(3, field(1, attr.encode()) + field(2, listed.SerializeToString()))
        out += field(1, data)
    return out


def test_kernels_with_constraints_of_every_kind_are_read():
    data = kernel_list(
        ("GatherNd", "CPU", {"Tparams": ["float32", "int8"], "policy": [b"", b"IGNORE"]}),
        ("ApproxTopK", "CPU", {"is_max_k": [True], "reduction_dimension": [-1], "recall": [0.5]}),
        ("Free", "CPU", {}),
        ("Free", "GPU", {"T": ["float32"]}),
    )
    found = kernels_of(data, ["CPU"])
    assert found["GatherNd"] == {
        (("Tparams", t), ("policy", p)) for t in ("float32", "int8") for p in ("", "IGNORE")
    }
    assert found["ApproxTopK"] == {
        (("is_max_k", "true"), ("recall", "0.5"), ("reduction_dimension", "-1"))
    }
    assert found["Free"] == {()}


def test_a_constraint_that_cannot_be_read_is_an_error():
    with pytest.raises(ValueError, match="lists no values"):
        kernels_of(kernel_list(("Op", "CPU", {"T": []})), ["CPU"])


@pytest.mark.parametrize(
    ("name", "types", "releases"),
    [
        ("GatherNd", {"Tparams": ("float32",), "Tindices": ("int32",)}, "1.12-"),
        (
            "GatherNd",
            {"Tparams": ("float32",), "Tindices": ("int32",), "bad_indices_policy": ("ERROR",)},
            "1.12-",
        ),
        (
            "GatherNd",
            {"Tparams": ("float32",), "Tindices": ("int32",), "bad_indices_policy": ("odd",)},
            "1.12-2.17",
        ),
        ("DepthToSpace", {"T": ("float32",)}, "1.12-"),
        (
            "DepthToSpace",
            {"T": ("float32",), "data_format": ("NCHW",)},
            "1.12-2.0",
        ),  # later ones would have failed when run
        ("SpaceToDepth", {"T": ("float32",), "data_format": ("NHWC",)}, "1.12-"),
        ("ApproxTopK", {"T": ("float32",), "is_max_k": ("true",)}, "2.13-"),
        ("TopK", {"T": ("float32",)}, "1.12-2.12"),
        ("PyFunc", {"Tin": ("float32",), "Tout": ("float32",)}, "1.12-"),
        ("EagerPyFunc", {"Tin": ("float32",), "Tout": ("float32",)}, "1.12-"),
    ],
)
def test_releases_with_a_kernel_for_these_attrs(name, types, releases):
    table = history()
    assert table.text(advice.with_kernel(table.op(name), types, table)) == releases


def test_kernels_that_only_python_has_are_told():
    assert [name for name in history().names if history().op(name).needs_python] == [
        "EagerPyFunc",
        "PyFunc",
        "PyFuncStateless",
    ]


def public(names):
    """Without the ops of the runtime itself: wheels of one release for two Pythons differ in them,
    and no model holds any.
    """
    return [name for name in names if not name.startswith("_")]


@pytest.mark.tensorflow
def test_the_table_is_what_the_installed_tensorflow_registers(tmp_path):
    from compat_matrix.runtimes.runtime import local_runtime

    table = history()
    release, snapshot = op_tables.ask(local_runtime())
    index = table.index(release.name)
    if index is None:
        pytest.skip(
            f"the table does not have TensorFlow {release.tensorflow} (python -m compat_matrix.commands.ops update"
            " adds it)"
        )
    stored = table.snapshot(index)
    assert table.releases[index].producer == release.producer
    assert table.releases[index].dtypes == release.dtypes
    assert public(sorted(stored)) == public(sorted(snapshot)) and len(snapshot) > 1500
    different = [name for name in public(snapshot) if snapshot[name] != stored[name]]
    # Other builds of a release (with oneDNN, for another machine) have more kernels, never another
    # definition.
    assert [name for name in different if snapshot[name].attrs != stored[name].attrs] == []
    assert different == []


@pytest.mark.tensorflow
def test_updating_with_an_installed_runtime_gives_the_same_bytes(tmp_path):
    from compat_matrix.runtimes.runtime import local_runtime

    runtime = local_runtime()
    version = runtime.tensorflow_version
    if not any(release.tensorflow == version for release in history().releases):
        pytest.skip(f"the table was not made from TensorFlow {version}")
    table = tmp_path / "op_history.jsonl"
    table.write_bytes(TABLE.read_bytes())
    told = []
    op_tables.update([runtime], told.append, table)
    kept, written = (
        [line for line in path.read_text().splitlines() if '"op":"_' not in line]
        for path in (TABLE, table)
    )
    assert written == kept and len(kept) > 1800
    assert version in told[0]
