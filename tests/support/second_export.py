"""Two exports of one model.

The second differs as exporters make them differ; docs/zoo/client_contract.md and docs/zoo/diff.md show both.

    python tests/support/second_export.py FOLDER

writes ``FOLDER/1`` and ``FOLDER/2``.
"""

import shutil
import sys
from pathlib import Path

import model_edits
import numpy as np

CASE = "module_functions"
WEIGHT = "parts/0/.ATTRIBUTES/VARIABLE_VALUE"


def _edit(message):
    """An input of a fixed size, an output of another name, and a Relu in front of a
    multiplication.
    """
    (graph,) = message.meta_graphs
    signature = graph.signature_def["serving_default"]
    signature.inputs["x"].tensor_shape.dim[0].size = 8
    signature.outputs["scores"].CopyFrom(signature.outputs.pop("output_0"))
    function = next(
        item
        for item in graph.graph_def.library.function
        if item.signature.name == "__inference_multiply_112"
    )
    relu = function.node_def.add(
        name="Relu", op="Relu", input=[function.signature.input_arg[0].name]
    )
    multiplied = next(node for node in function.node_def if node.op == "Mul")
    relu.attr["T"].CopyFrom(multiplied.attr["T"])
    multiplied.input[0] = "Relu:activations:0"


def _next_float(key, array):
    """The values of a checkpoint, with the first value of one weight moved to the next number."""
    if key == WEIGHT:
        array[0] = np.nextafter(array[0], np.float32(np.inf))
    return array


def main(folder):
    first, second = Path(folder) / "1", Path(folder) / "2"
    shutil.copytree(model_edits.fixture(CASE), first)
    model_edits.edited(first, second, _edit)
    model_edits.copy_checkpoint(second, _next_float)
    with (second / "assets" / "vocabulary.txt").open("a", encoding="utf-8") as vocabulary:
        vocabulary.write("d\n")


if __name__ == "__main__":
    main(sys.argv[1])
