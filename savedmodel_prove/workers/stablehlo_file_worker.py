"""XLA on a StableHLO module, compiled for the CPU by `jax`: MLIR as text, or as bytecode."""

import collections
import os
import re

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import file_worker
import jax
import numpy as np
from jax._src.interpreters import mlir
from jax._src.lib import _jax, xla_client
from jax.extend import backend
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir.dialects import func, stablehlo
from savedmodel_compat_workers import protocol, tensors

KEY = "serving_default"  # a module has one public function
BYTECODE = b"ML\xefR"
MAIN = "main"  # the function that XLA compiles
DTYPES = {
    "f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i1": "bool",
    "i4": "int4", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64",
    "ui4": "uint4", "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64",
    "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2",
    "complex<f32>": "complex64", "complex<f64>": "complex128",
}  # fmt: skip
# Attributes in which exporters keep the names of inputs and outputs.
INPUT_NAMES = ("tf_saved_model.index_path", "jax.arg_info")
OUTPUT_NAMES = ("tf_saved_model.index_path", "jax.result_info")
QUOTED = re.compile(r"""["']([^"']+)["']""")
LOCATION_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"(?!:\d)')  # a file is followed by its line

Model = collections.namedtuple("Model", ["content", "compiled"])


class StableHLOFileWorker(file_worker.FileWorker):
    """A function with open dimensions is compiled again for each shape of the inputs."""

    name = "xla"

    def __init__(self):
        super().__init__()
        self.client = backend.get_backend("cpu")

    def versions(self):
        return dict(super().versions(), jaxlib=jax.lib.__version__)

    def load(self, directory, tags):
        with open(directory, "rb") as file:
            content = file.read()
        with mlir.make_ir_context():
            module = parsed(content)
            main_of(module)
        return Model(content, {})

    def signatures(self, model):
        with mlir.make_ir_context():
            module = parsed(model.content)
            main = main_of(module)
            inputs, outputs = names_of(main)
            return {
                KEY: {
                    "inputs": {n: described(t) for n, t in zip(inputs, main.type.inputs)},
                    "outputs": {n: described(t) for n, t in zip(outputs, main.type.results)},
                }
            }

    def call_signature(self, model, key, inputs):
        return self._results(model, inputs, inside=False)

    def intermediate(self, model, key, inputs):
        """The values of all ops whose location has a name, as converters write it."""
        return self._results(model, inputs, inside=True)

    def _results(self, model, inputs, inside):
        shapes = tuple(sorted((name, one.array.shape) for name, one in inputs.items()))
        if (shapes, inside) not in model.compiled:
            model.compiled[shapes, inside] = self._compiled(model, inputs, inside)
        given, names, program = model.compiled[shapes, inside]
        arrays = [jax_array(inputs[name], self.client.devices()[0]) for name in given]
        values = program.execute(arrays)
        return {name: from_jax(value) for name, value in zip(names, values)}

    def _compiled(self, model, inputs, inside):
        """The names of inputs and results, and the program for the shapes of some inputs."""
        with mlir.make_ir_context(), ir.Location.unknown():
            module = parsed(model.content)
            main = main_of(module)
            given, names = names_of(main)
            missing = [name for name in given if name not in inputs]
            if missing:
                raise ValueError(f"the input {missing[0]} is missing")
            module = with_shapes(module, [inputs[name].array.shape for name in given], given)
            if inside:
                names = names + show_inside(module)
            devices = _jax.DeviceList(tuple(self.client.devices()[:1]))
            options = xla_client.CompileOptions()
            return given, names, self.client.compile_and_load(module, devices, options)


def parsed(content):
    """The module of a file."""
    if content.startswith(BYTECODE):
        return stablehlo.deserialize_portable_artifact(mlir.ir.Context.current, content)
    try:
        return ir.Module.parse(content)
    except ir.MLIRError as error:  # the last line says where and why
        raise ValueError(str(error).strip().splitlines()[-1]) from error


def main_of(module):
    """The only public function, which is called main from now on."""
    functions = [one for one in module.body.operations if isinstance(one, func.FuncOp)]
    public = [one for one in functions if not is_private(one)]
    main = [one for one in public if one.name.value == MAIN]
    if not main and len(public) != 1:
        listed = ", ".join(one.name.value for one in public) or "none"
        raise ValueError("no function is main, and the public ones are: " + listed)
    found = (main or public)[0]
    found.attributes["sym_name"] = ir.StringAttr.get(MAIN)
    return found


def is_private(function):
    """Whether only the module itself can call a function."""
    there = "sym_visibility" in function.attributes
    return there and function.attributes["sym_visibility"].value == "private"


def names_of(main):
    """The names of the inputs and outputs; ``arg0`` and ``result0`` where the file gives none."""
    inputs = [
        given_name(attributes(main, "arg_attrs", place), INPUT_NAMES)
        or bare(location_name(one.location))
        for place, one in enumerate(main.arguments)
    ]
    outputs = [
        given_name(attributes(main, "res_attrs", place), OUTPUT_NAMES)
        for place in range(len(main.type.results))
    ]
    return unique(inputs, "arg"), unique(outputs, "result")


def attributes(main, which, place):
    """The attributes of an input or output of a function."""
    return main.attributes[which][place] if which in main.attributes else {}


def given_name(attribute, keys):
    """The name in an attribute, or ""."""
    return next((bare(str(attribute[key]).strip('"')) for key in keys if key in attribute), "")


def bare(text):
    """The name in the spelling of an exporter: ``result['y']`` and ``["y"]`` are y."""
    quoted = QUOTED.findall(text)
    return quoted[-1] if quoted else text


def location_name(location):
    """The name in a location; of a fused op, that of its last part. "" if there is none."""
    found = LOCATION_NAME.findall(str(location))
    return found[0].rpartition(";")[2] if found else ""


def unique(names, kind):
    """The names, with ``KIND<place>`` for those that are absent or not the only ones."""
    often = collections.Counter(names)
    return [
        name if name and often[name] == 1 else kind + str(place) for place, name in enumerate(names)
    ]


def described(kind):
    """The dtype and shape of a type."""
    shaped = ir.RankedTensorType(kind)
    dtype = str(shaped.element_type)
    shape = [
        -1 if shaped.is_dynamic_dim(axis) else shaped.shape[axis] for axis in range(shaped.rank)
    ]
    return {"dtype": DTYPES.get(dtype, dtype), "shape": shape}


def with_shapes(module, shapes, names):
    """The module with static shapes. ValueError: an input does not fit."""
    main = main_of(module)
    kinds = [ir.RankedTensorType(one) for one in main.type.inputs]
    for kind, shape, name in zip(kinds, shapes, names):
        wanted = described(kind)["shape"]
        fits = len(wanted) == len(shape) and all(a in (-1, b) for a, b in zip(wanted, shape))
        if not fits:
            text = "the input {} of the module has the shape {}, not {}"
            raise ValueError(text.format(name, wanted, list(shape)))
    if all(kind.has_static_shape for kind in kinds):
        return module
    wrap(module, main, [ir.RankedTensorType.get(s, k.element_type) for s, k in zip(shapes, kinds)])
    content = mlir.module_to_bytecode(module)
    return ir.Module.parse(
        _jax.mlir.refine_polymorphic_shapes(
            content, enable_shape_assertions=True, validate_static_shapes=True
        )
    )


def wrap(module, main, types):
    """Call a function with open dimensions from a new main, whose inputs have these types."""
    main.attributes["sym_name"] = ir.StringAttr.get("wrapped_main")
    main.attributes["sym_visibility"] = ir.StringAttr.get("private")
    with ir.InsertionPoint(module.body):
        outer = func.FuncOp(MAIN, (types, main.type.results), visibility="public")
        with ir.InsertionPoint(outer.add_entry_block()):
            given = [
                one if one.type == kind else stablehlo.convert(kind, one)
                for one, kind in zip(outer.arguments, main.type.inputs)
            ]
            name = ir.FlatSymbolRefAttr.get("wrapped_main")
            func.ReturnOp(func.CallOp(main.type.results, name, given).results)


def show_inside(module):
    """Make the values inside results too, and return their names in the order of these results."""
    passmanager.PassManager.parse("builtin.module(inline)").run(module.operation)
    main = main_of(module)
    block = main.regions[0].blocks[0]
    *ops, end = block.operations
    found = {}  # the last op under a name has the value of the node
    for op in ops:
        name = location_name(op.location)
        if name and len(op.results) and isinstance(op.results[0].type, ir.RankedTensorType):
            found[name] = op.results[0]
    values = list(end.operands) + list(found.values())
    types = ir.FunctionType.get(main.type.inputs, [one.type for one in values])
    main.attributes["function_type"] = ir.TypeAttr.get(types)
    if "res_attrs" in main.attributes:
        del main.attributes["res_attrs"]
    end.operation.erase()
    with ir.InsertionPoint(block):
        func.ReturnOp(values)
    return list(found)


def jax_array(tensor, device):
    """An input on a device."""
    return jax.device_put(np.ascontiguousarray(file_worker.to_array(tensor)), device)


def from_jax(value):
    """A result as a tensor."""
    return tensors.from_numpy(np.asarray(value))


def main():
    jax.config.update("jax_enable_x64", True)
    protocol.serve(StableHLOFileWorker)


if __name__ == "__main__":
    main()
