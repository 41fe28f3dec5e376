"""The planted set: for each rule of `verify` a model that has this defect and no other."""

from __future__ import annotations

import os
import shutil

import model_edits as edits
import numpy as np

from property_tests.attacks import objects
from reference_impl.format import schema
from reference_impl.format.container import layout
from reference_impl.format.container.fingerprint import fingerprint
from reference_impl.format.schema.ordered import ordered_bytes

V1, V2 = (
    "half_plus_two",
    "module_functions",
)  # of TF 1.x, with variables; with objects, variables, functions, an asset


def whole(case, folder):
    """A copy of a fixture."""
    return shutil.copytree(edits.fixture(case), folder)


def graph_edit(case, edit):
    """A builder: a fixture whose first MetaGraph ``edit`` has been at."""
    return lambda folder: edits.edited(
        edits.fixture(case), folder, lambda message: edit(message.meta_graphs[0])
    )


def files_edit(case, edit):
    """A builder: a copy of a fixture whose directory ``edit`` has been at."""

    def build(folder):
        edit(whole(case, folder))

    return build


def data(folder):
    return folder / "variables" / "variables.data-00000-of-00001"


def flip(path, at=-1):
    content = bytearray(path.read_bytes())
    content[at] ^= 1
    path.write_bytes(bytes(content))


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def huge_fingerprint(folder):
    (folder / "fingerprint.pb").touch()
    os.truncate(folder / "fingerprint.pb", 10 << 30)


def of_300_dimensions(graph):
    made = node(graph, "wide", "Placeholder")
    made.attr["dtype"].type = schema.DT_FLOAT
    for _ in range(300):
        made.attr["shape"].shape.dim.add(size=1)


def child_called(graph, name):
    nodes = graph.object_graph_def.nodes
    function = next(number for number, item in enumerate(nodes) if item.HasField("function"))
    nodes[0].children.add(node_id=function, local_name=name)


def table_on(graph, device):
    next(
        item for item in graph.object_graph_def.nodes if item.HasField("resource")
    ).resource.device = device


def extension(graph):
    graph.collection_def["savedmodel_compat.extension"].bytes_list.value.append(b"not base64!")


def as_text(folder):
    (folder / "saved_model.pbtxt").write_text("saved_model_schema_version: 1", encoding="utf-8")


def same_tags(message):
    for graph in message.meta_graphs:
        graph.meta_info_def.ClearField("tags")
        graph.meta_info_def.tags.append("serve")


def other_tag(graph):
    graph.meta_info_def.tags[:] = ["mine"]


def wrong_fingerprint(folder):
    whole(V2, folder)
    model = layout.read(folder)
    found = fingerprint(
        model.saved_model, ordered_bytes(model.saved_model), model.checkpoint_prefix, {}
    )
    found.checkpoint_hash ^= 1
    (folder / "fingerprint.pb").write_bytes(schema.serialize(found))


def without_key(folder):
    edits.copy_checkpoint(whole(V1, folder), lambda key, array: None if key == "a" else array)


def other_dtype(folder):
    edits.copy_checkpoint(
        whole(V1, folder), lambda key, array: array.astype(np.float64) if key == "a" else array
    )


def untracked(graph):
    """The object graph calls a variable differently than the checkpoint."""
    nodes = graph.object_graph_def.nodes
    variables = {number for number, node in enumerate(nodes) if node.HasField("variable")}
    for node in nodes:
        for child in node.children:
            if child.node_id in variables:
                child.local_name += "_renamed"


def output(graph, name):
    """The TensorInfo of an output of the first signature."""
    key = min(graph.signature_def)
    infos = graph.signature_def[key].outputs
    infos[min(infos)].name = name


def unknown_init(graph):
    graph.collection_def["saved_model_main_op"].node_list.value.append("nowhere")


def node(graph, name, op, *inputs):
    made = graph.graph_def.node.add(name=name, op=op, input=inputs)
    if op == "Identity":
        made.attr["T"].type = schema.DT_FLOAT
    elif op == "PartitionedCall":
        made.attr["Tin"].list.SetInParent()
        made.attr["Tout"].list.SetInParent()
    return made


def twice(graph):
    node(graph, "two", "NoOp")
    node(graph, "two", "NoOp")


def missing_function(graph):
    node(graph, "call", "PartitionedCall").attr["f"].func.name = "nowhere"


def circle(graph):
    node(graph, "first", "Identity", "second")
    node(graph, "second", "Identity", "first")


def recursive(graph):
    function = graph.graph_def.library.function.add()
    function.signature.name = "f"
    call = function.node_def.add(name="again", op="PartitionedCall")
    call.attr["f"].func.name = "f"
    call.attr["Tin"].list.SetInParent()
    call.attr["Tout"].list.SetInParent()


def text(graph, name, value):
    """A constant of one string."""
    constant = node(graph, name, "Const")
    constant.attr["dtype"].type = schema.DT_STRING
    constant.attr["value"].tensor.dtype = schema.DT_STRING
    constant.attr["value"].tensor.string_val.append(value)


def waited_for(graph, name):
    """The first output of the first signature waits for a node."""
    signature = graph.signature_def[min(graph.signature_def)]
    wanted = signature.outputs[min(signature.outputs)].name.partition(":")[0]
    next(item for item in graph.graph_def.node if item.name == wanted).input.append(f"^{name}")


def path_in_constant(graph):
    text(graph, "path", b"/home/me/data/vocabulary.txt")
    waited_for(graph, "path")


def outside(folder):
    def edit(message):
        message.meta_graphs[0].asset_file_def[0].filename = "../vocabulary.txt"

    edits.edited(edits.fixture(V2), folder, edit)
    shutil.rmtree(folder / "assets")


def gradient(graph):
    graph.graph_def.library.function[0].node_def[0].attr[
        "_gradient_op_type"
    ].s = b"CustomGradient-12"


def gradient_of_gradient(graph):
    """A custom gradient that is in the file, and names another one that is not."""
    library = graph.graph_def.library
    library.function[0].node_def[0].attr["_gradient_op_type"].s = b"CustomGradient-12"
    library.registered_gradients.add(
        gradient_func="planted_gradient", registered_op_type="CustomGradient-12"
    )
    function = library.function.add()
    function.signature.name = "planted_gradient"
    function.signature.input_arg.add(name="dy", type=schema.DT_FLOAT)
    function.signature.output_arg.add(name="dx", type=schema.DT_FLOAT)
    node = function.node_def.add(name="again", op="Identity", input=["dy"])
    node.attr["T"].type = schema.DT_FLOAT
    node.attr["_gradient_op_type"].s = b"CustomGradient-34"
    function.ret["dx"] = "again:output:0"


def write(graph):
    """A node that writes a file."""
    text(graph, "file", b"done")
    text(graph, "content", b"written by a model")
    node(graph, "write", "WriteFile", "file", "content")


def write_at_load(graph):
    write(graph)
    graph.collection_def["saved_model_main_op"].node_list.value.append("write")


def write_at_call(graph):
    write(graph)
    waited_for(graph, "write")


def image_at_load(graph):
    """An init op that unpacks an image, which may have any size."""
    made = node(graph, "text", "Const")
    made.attr["dtype"].type = made.attr["value"].tensor.dtype = schema.DT_STRING
    made.attr["value"].tensor.string_val.append(b"an image")
    node(graph, "decode", "DecodePng", "text")
    graph.collection_def["saved_model_main_op"].node_list.value.append("decode")


def placeholder(graph, name, shape=None):
    """A placeholder of floats; its tensor."""
    made = node(graph, name, "Placeholder")
    made.attr["dtype"].type = schema.DT_FLOAT
    made.attr["shape"].shape.CopyFrom(
        schema.TensorShapeProto(unknown_rank=True) if shape is None else dims(*shape)
    )
    return f"{name}:0"


def dims(*sizes):
    return schema.TensorShapeProto(dim=[schema.TensorShapeProto.Dim(size=size) for size in sizes])


def signature(graph, inputs, outputs):
    """A signature of floats more: ``{name: tensor}`` each."""
    made = graph.signature_def["planted"]
    made.method_name = "tensorflow/serving/predict"
    for infos, given in ((made.inputs, inputs), (made.outputs, outputs)):
        for name, tensor in given.items():
            infos[name].name, infos[name].dtype = tensor, schema.DT_FLOAT
            infos[name].tensor_shape.unknown_rank = True
    return made


def shared_input(graph):
    tensor = placeholder(graph, "given")
    node(graph, "taken", "Identity", "given")
    signature(graph, {"a": tensor, "b": tensor}, {"y": "taken:0"})


def unfed(graph):
    placeholder(graph, "given")
    node(graph, "taken", "Identity", "given")
    signature(graph, {}, {"y": "taken:0"})


def fed_in_part(graph):
    placeholder(graph, "given")
    made = node(graph, "both", "IdentityN", "given", "given")
    made.attr["T"].list.type.extend([schema.DT_FLOAT] * 2)
    node(graph, "taken", "Identity", "both:1")
    signature(graph, {"x": "both:0"}, {"y": "taken:0"})


def reference(graph):
    made = node(graph, "held", "VariableV2")
    made.attr["dtype"].type = schema.DT_FLOAT
    made.attr["shape"].shape.CopyFrom(dims(2))
    value = node(graph, "zero", "Const")
    value.attr["dtype"].type = value.attr["value"].tensor.dtype = schema.DT_FLOAT
    value.attr["value"].tensor.tensor_shape.CopyFrom(dims(2))
    value.attr["value"].tensor.float_val.append(0)
    node(graph, "set", "Assign", "held", "zero").attr["T"].type = schema.DT_FLOAT
    signature(graph, {}, {"y": "set:0"})


def tensor_number(graph):
    signature(graph, {"x": placeholder(graph, "given")}, {"y": "given:1"})


def keyword_input(graph):
    tensor = placeholder(graph, "given")
    node(graph, "taken", "Identity", "given")
    signature(graph, {"class": tensor}, {"y": "taken:0"})


def version(graph):
    graph.meta_info_def.tensorflow_version = "1.15.0-built-here"


def type_spec(graph):
    function = graph.object_graph_def.concrete_functions[
        min(graph.object_graph_def.concrete_functions)
    ]
    spec = function.output_signature.type_spec_value
    spec.type_spec_class, spec.type_spec_class_name = (
        schema.TypeSpecProto.REGISTERED_TYPE_SPEC,
        "tfp.distributions.Normal_ACTTypeSpec",
    )


def other_shape(graph):
    placeholder(graph, "given", (2, 3))
    node(graph, "taken", "Identity", "given").attr["_output_shapes"].list.shape.add().CopyFrom(
        dims(5, 3)
    )


def other_dtype_promised(graph):
    """An ArgMax of int64, which its signature calls int32."""
    axis = node(graph, "axis", "Const")
    axis.attr["dtype"].type = axis.attr["value"].tensor.dtype = schema.DT_INT32
    axis.attr["value"].tensor.tensor_shape.SetInParent()
    axis.attr["value"].tensor.int_val.append(0)
    tensor = placeholder(graph, "given", (-1,))
    largest = node(graph, "largest", "ArgMax", "given", "axis")
    largest.attr["T"].type, largest.attr["Tidx"].type = schema.DT_FLOAT, schema.DT_INT32
    largest.attr["output_type"].type = schema.DT_INT64
    made = signature(graph, {"x": tensor}, {"y": "largest:0"})
    made.inputs["x"].tensor_shape.CopyFrom(dims(-1))
    made.outputs["y"].dtype = schema.DT_INT32


def signature_without_object(graph):
    graph.signature_def["planted"].CopyFrom(graph.signature_def["serving_default"])


def synchronization(graph):
    next(
        node.variable for node in graph.object_graph_def.nodes if node.HasField("variable")
    ).synchronization = 77


def table_made_by_a_variable(graph):
    nodes = graph.object_graph_def.nodes
    table = next(node for node in nodes if node.HasField("resource"))
    made = next(child for child in table.children if child.local_name == "_create_resource")
    made.node_id = next(number for number, node in enumerate(nodes) if node.HasField("variable"))


def list_in_itself(graph):
    nodes = graph.object_graph_def.nodes
    nodes.add().user_object.identifier = "trackable_list_wrapper"
    nodes[-1].children.add(node_id=len(nodes) - 1, local_name="0")
    nodes[0].children.add(node_id=len(nodes) - 1, local_name="circle")


def collection(graph):
    graph.collection_def["train_op"].node_list.value.append("nowhere")


def pipe(folder):
    (folder / "assets.extra").mkdir()
    os.mkfifo(folder / "assets.extra" / "requests")


PLANTED = {
    "SMC100": files_edit(V2, huge_fingerprint),
    "SMC101": files_edit(V1, lambda folder: cut(folder / "saved_model.pb")),
    "SMC102": files_edit(V1, lambda folder: (folder / "saved_model.pb").unlink()),
    "SMC103": files_edit(V1, as_text),
    "SMC104": lambda folder: edits.edited(edits.fixture("serve_and_train"), folder, same_tags),
    "SMC105": files_edit(V1, lambda folder: None),  # with the limit lowered
    "SMC106": graph_edit(V1, other_tag),
    "SMC107": wrong_fingerprint,
    "SMC108": files_edit(V1, pipe),
    "SMC201": files_edit(V1, lambda folder: shutil.rmtree(folder / "variables")),
    "SMC202": files_edit(V1, lambda folder: data(folder).unlink()),
    "SMC203": files_edit(V1, lambda folder: flip(data(folder))),
    "SMC204": files_edit("v1_checkpoint", lambda folder: None),
    "SMC205": files_edit(
        V1,
        lambda folder: shutil.copy(
            data(folder), folder / "variables" / "variables.data-00001-of-00002"
        ),
    ),
    "SMC211": without_key,
    "SMC212": other_dtype,
    "SMC213": files_edit("local_variables", lambda folder: None),
    "SMC214": graph_edit(V2, untracked),
    "SMC301": graph_edit(V1, lambda graph: output(graph, "nowhere:0")),
    "SMC302": graph_edit(V1, unknown_init),
    "SMC303": graph_edit(V1, lambda graph: node(graph, "lost", "Identity", "nowhere")),
    "SMC304": graph_edit(V1, twice),
    "SMC305": graph_edit(V1, missing_function),
    "SMC306": graph_edit(V1, recursive),
    "SMC307": graph_edit(V1, lambda graph: graph.signature_def.clear()),
    "SMC308": graph_edit(V1, circle),
    "SMC309": graph_edit(V1, collection),
    "SMC315": objects.constant_of_a_negative_size,
    "SMC310": graph_edit(V2, of_300_dimensions),
    "SMC317": graph_edit(V2, lambda graph: child_called(graph, "_gather_saveables_for_checkpoint")),
    "SMC316": graph_edit(V2, lambda graph: table_on(graph, "/job:../../x:;")),
    "SMC321": graph_edit(V2, extension),
    "SMC311": graph_edit(
        V2,
        lambda graph: graph.object_graph_def.nodes[0].children.add(node_id=999, local_name="lost"),
    ),
    "SMC312": graph_edit(V2, synchronization),
    "SMC313": graph_edit(V2, table_made_by_a_variable),
    "SMC314": graph_edit(V2, list_in_itself),
    "SMC401": files_edit("table_no_init", lambda folder: None),
    "SMC411": files_edit(V2, lambda folder: (folder / "assets" / "vocabulary.txt").unlink()),
    "SMC412": outside,
    "SMC413": graph_edit(V1, path_in_constant),
    "SMC414": files_edit(V2, lambda folder: (folder / "assets" / "other.txt").write_bytes(b"")),
    "SMC501": files_edit("gpu_pinned", lambda folder: None),
    "SMC511": files_edit("keras_compiled_save", lambda folder: None),
    "SMC512": graph_edit(V2, gradient),
    "SMC513": graph_edit(V2, gradient_of_gradient),
    "SMC541": files_edit(
        "estimator_custom", lambda folder: None
    ),  # a text in place of the requests
    "SMC521": graph_edit(V1, shared_input),
    "SMC522": graph_edit(V1, unfed),
    "SMC523": graph_edit(V1, fed_in_part),
    "SMC524": graph_edit(V1, reference),
    "SMC525": graph_edit(V1, tensor_number),
    "SMC526": graph_edit(V1, keyword_input),
    "SMC527": graph_edit(V1, version),
    "SMC528": graph_edit(V2, type_spec),
    "SMC529": files_edit("contrib_op", lambda folder: None),
    "SMC531": graph_edit(V1, other_shape),
    "SMC532": graph_edit(V1, other_dtype_promised),
    "SMC533": graph_edit(V2, signature_without_object),
    "SMC601": graph_edit(V1, write_at_load),
    "SMC602": graph_edit(V1, write_at_call),
    "SMC603": graph_edit(V1, lambda graph: node(graph, "other", "OpOfSomebodyElse")),
    "SMC604": files_edit("py_func", lambda folder: None),
    "SMC605": graph_edit(V1, image_at_load),
}
# The fixtures that have a defect of warning or above on purpose.
DEFECTIVE = {
    "estimator_custom": {"SMC541"},  # a text in place of warm-up requests
    "contrib_op": {"SMC529"},
    "false_output_shape": {"SMC531"},
    "contrib_renamed_op": {"SMC529"},
    "dtypes_removed_kernels": {"SMC529"},
    "estimator_boosted_trees": {"SMC529"},
    "estimator_receivers": {"SMC523"},
    "keras_experimental_export": {"SMC522"},
    "reference_outputs": {"SMC524"},
    "gpu_pinned": {"SMC501"},
    "keras_compiled_save": {"SMC511"},
    "local_variables": {"SMC213"},
    "py_func": {"SMC604"},
    "table_no_init": {"SMC401"},
    "untracked_vocabulary": {"SMC601"},
    "v1_checkpoint": {"SMC204"},
}
