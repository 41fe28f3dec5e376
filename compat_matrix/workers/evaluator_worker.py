"""`reference_eval`: a session evaluated with NumPy, in a process without TensorFlow.

It runs in the harness's own Python, so that one process serves every runtime. Its kernels are its
own: answers are compared within a tolerance.

Python 3.6 syntax.
"""

import collections

from . import protocol, signature_wire
from . import tensors as tensor_file

CONSUMER = {
    "place": 9,
    "summary": "reference_eval of this project: the graph with NumPy, without TensorFlow",
    "capabilities": ("tags",),
    "checks": ("load", "signatures", "values"),
    "version": "1",  # of the evaluator, in cell ids
    "tolerance": (
        2e-5,
        2e-6,
        "NumPy's kernels: other approximations of exp and tanh, sums in another order",
    ),
}

Model = collections.namedtuple("Model", ["evaluated", "signatures"])


class EvaluatorWorker(protocol.Worker):
    """One model of `reference_eval` for each MetaGraph."""

    name = "evaluator"
    capabilities = CONSUMER["capabilities"]

    def __init__(self):
        super(EvaluatorWorker, self).__init__()
        import reference_eval
        from reference_impl.format import schema

        self.evaluator, self.schema = reference_eval, schema
        self.refusals = self.refusals + (
            reference_eval.NotEvaluatedError,
            reference_eval.EvaluationLimitError,
        )

    def versions(self):
        import google.protobuf

        out = super(EvaluatorWorker, self).versions()
        out.update(evaluator=CONSUMER["version"], protobuf=google.protobuf.__version__)
        return out

    def load(self, directory, tags):
        evaluated = self.evaluator.load(directory, tags)
        for error in evaluated.errors:  # a session would not load the model
            raise error
        serialized = self.schema.serialize(evaluated.meta_graph)
        described = signature_wire.described(signature_wire.signature_defs(serialized))
        return Model(evaluated, described)

    def signatures(self, model):
        return signature_wire.describe(model.signatures)

    def call_signature(self, model, key, inputs):
        _, produced = signature_wire.feed_names(model.signatures, key, inputs)
        call = model.evaluated.signatures[key]
        given = {}
        for entry in model.signatures[key][0]:
            if entry.name not in inputs:
                continue
            tensor = inputs[entry.name]
            if entry.dtype not in (tensor.dtype, "invalid"):
                raise TypeError(
                    "input {!r} of {!r} is {}, given is {}".format(
                        entry.name, key, entry.dtype, tensor.dtype
                    )
                )
            given[entry.name] = tensor.array.view(_own_dtype(tensor.array, call, entry.name))
        values = call(**given)
        return protocol.named((entry.name, _tensor(values, entry)) for entry in produced)


def _own_dtype(array, call, name):
    """The dtype in which the evaluator computes an input; a carrier has its size."""
    dtype = call.inputs[name][0]
    return dtype if dtype.itemsize == array.dtype.itemsize else array.dtype


def _tensor(values, entry):
    """An output as a tensor of the dtype that the SignatureDef states; TF 1.x may leave it out."""
    value = values[entry.name]
    stated = entry.dtype.startswith(("q", "int4", "uint4", "int2", "uint2"))
    return tensor_file.from_numpy(value, entry.dtype if stated else None)


def main():
    protocol.serve(EvaluatorWorker)
