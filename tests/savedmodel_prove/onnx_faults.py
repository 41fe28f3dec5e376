"""Faults in a converted file, each as a converter or a hand-made port makes it.

A program for a Python that has `onnx`: ``python onnx_faults.py MODEL.onnx FOLDER`` writes a file
for each fault. Tests import only the table.
"""

import pathlib
import sys

PREFIX = "StatefulPartitionedCall/"

# Fault -> nodes of the original of which one must be named as the first.
FAULTS = {}


def fault(*nodes):
    """Register a function that spoils a model; `nodes` are the right answers."""

    def register(function):
        FAULTS[function.__name__] = nodes, function
        return function

    return register


class Model:
    """An ONNX model, with its nodes and initializers by the names of the original."""

    def __init__(self, path):
        import onnx

        self.proto = onnx.load(path)
        self.helper, self.numpy = onnx.helper, onnx.numpy_helper

    def node(self, name):
        """Return the node that makes a value."""
        wanted = (f"{PREFIX}{name}:0", name)
        return next(one for one in self.proto.graph.node if one.output[0] in wanted)

    def initializer(self, name):
        """Return an initializer."""
        wanted = (f"{PREFIX}{name}:0", name)
        return next(one for one in self.proto.graph.initializer if one.name in wanted)

    def array(self, name):
        """Return the numbers of an initializer."""
        return self.numpy.to_array(self.initializer(name)).copy()

    def put(self, name, array):
        """Replace the numbers of an initializer."""
        one = self.initializer(name)
        one.CopyFrom(self.numpy.from_array(array.astype(self.numpy.to_array(one).dtype), one.name))

    def set(self, name, **attributes):
        """Set attributes of a node."""
        node = self.node(name)
        for key, value in attributes.items():
            for old in [one for one in node.attribute if one.name == key]:
                node.attribute.remove(old)
            node.attribute.append(self.helper.make_attribute(key, value))

    def become(self, name, op):
        """Give a node another op, without attributes."""
        node = self.node(name)
        node.op_type = op
        del node.attribute[:]

    def swap(self, name):
        """Swap the two operands of a node."""
        node = self.node(name)
        node.input[0], node.input[1] = node.input[1], node.input[0]

    def exchange(self, one, other):
        """Exchange the numbers of two initializers."""
        left, right = self.array(one), self.array(other)
        self.put(one, right)
        self.put(other, left)


@fault("left/ReadVariableOp", "right/ReadVariableOp")
def kernels_of_equal_shape_swapped(model):
    model.exchange("left/ReadVariableOp", "right/ReadVariableOp")


@fault("stem", "stem_bias")
def padding_at_the_other_side(model):
    model.set("stem_bias", pads=[1, 1, 0, 0])


@fault("flat")
def flattened_in_nchw(model):
    model.node("flat").input[0] = f"{PREFIX}pool:0"


@fault("average")
def mean_over_another_axis(model):
    axes = model.node("average").input[1]
    model.put(axes, model.array(axes) + 1)


@fault("norm")
def epsilon_of_the_batch_norm(model):
    model.set("norm", epsilon=1e-5)


@fault("add/y")
def epsilon_of_the_layer_norm(model):
    model.put("add/y", model.array("add/y") / 10)


@fault("square/ReadVariableOp")
def transposed_weight(model):
    model.put("square/ReadVariableOp", model.array("square/ReadVariableOp").T)


@fault("hidden/ReadVariableOp")
def weight_rounded_to_float16(model):
    model.put("hidden/ReadVariableOp", model.array("hidden/ReadVariableOp").astype("float16"))


@fault("softmax")
def softmax_over_the_batch(model):
    model.set("probabilities", axis=0)


@fault("join")
def operands_of_a_subtraction_swapped(model):
    model.swap("join")


@fault("layer_norm")
def operands_of_a_division_swapped(model):
    model.swap("layer_norm")


@fault("tanh")
def sigmoid_for_tanh(model):
    model.become("tanh", "Sigmoid")


@fault("left_elu")
def relu_for_elu(model):
    model.become("left_elu", "Relu")


@fault("leaky")
def slope_of_the_leaky_relu(model):
    model.set("leaky", alpha=0.3)


@fault("stem_relu")
def no_activation(model):
    model.become("stem_relu", "Identity")


@fault("clip/Minimum/y", "clip/Minimum")
def bound_of_the_clip(model):
    model.put("clip/Minimum/y", model.array("clip/Minimum/y") - 0.5)


@fault("pool")
def average_for_max_pool(model):
    model.node("pool").op_type = "AveragePool"


@fault("embed")
def rows_of_the_embedding_moved(model):
    table = model.node("embed").input[0]
    model.put(table, model.array(table)[[1, 2, 3, 4, 0]])


@fault("bias")
def bias_dropped(model):
    node = model.node("bias")
    node.op_type = "Identity"
    del node.input[1:]


@fault("stem_bias/ReadVariableOp")
def bias_of_zeros(model):
    model.put("stem_bias/ReadVariableOp", model.array("stem_bias/ReadVariableOp") * 0)


@fault("ReadVariableOp", "ReadVariableOp_1")
def scale_and_offset_swapped(model):
    model.exchange("ReadVariableOp", "ReadVariableOp_1")


@fault("norm/ReadVariableOp", "norm/ReadVariableOp_1", "norm/FusedBatchNormV3/ReadVariableOp")
def mean_and_variance_swapped(model):
    model.exchange("norm/ReadVariableOp", "norm/ReadVariableOp_1")


@fault("best")
def argmin_for_argmax(model):
    model.node("class").op_type = "ArgMin"


@fault("features")
def parts_in_the_other_order(model):
    model.swap("features")


@fault("mul/y")
def constant_a_thousandth_off(model):
    model.put("mul/y", model.array("mul/y") * 1.001)


@fault("gate")
def hard_sigmoid_for_sigmoid(model):
    model.become("gate", "HardSigmoid")


@fault("total")
def mean_for_sum(model):
    model.node("total").op_type = "ReduceMean"


@fault("stem/ReadVariableOp")
def kernel_flipped(model):
    model.put("stem/ReadVariableOp", model.array("stem/ReadVariableOp")[:, :, ::-1, ::-1])


@fault("logits/ReadVariableOp")
def classes_in_another_order(model):
    model.put("logits/ReadVariableOp", model.array("logits/ReadVariableOp")[:, [1, 0, 2]])


@fault("spread")
def square_root_dropped(model):
    model.become("spread", "Identity")


@fault("hidden/ReadVariableOp", "")  # the file cannot be loaded: nothing is asked
def initializer_dropped(model):
    model.proto.graph.initializer.remove(model.initializer("hidden/ReadVariableOp"))


@fault("logits", "softmax")
def outputs_under_each_others_names(model):
    graph = model.proto.graph
    names = {"logits": "probabilities", "probabilities": "logits"}
    for node in graph.node:
        for listed in (node.input, node.output):
            for position, name in enumerate(listed):
                listed[position] = names.get(name, name)


def main():
    source, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    for name, (_, spoil) in FAULTS.items():
        model = Model(source)
        spoil(model)
        (folder / f"{name}.onnx").write_bytes(model.proto.SerializeToString())


if __name__ == "__main__":
    main()
