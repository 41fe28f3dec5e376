"""A StableHLO module called through `XlaCallModule`, as JAX exports it (TF 2.14 and later)."""

CLAUSES = ("RP-07", "SIG-17")
FEATURES = ("ops", "xla")

_MODULE = b"""module @affine {
  func.func public @main(%x: tensor<2xf32>, %v: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.multiply %x, %v : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}"""


def build(tf, work):
    root = tf.Module()
    root.v = tf.Variable([2.0, 4.0])

    @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, "x")], autograph=False)
    def f(x):
        # tf.raw_ops hides this op, so the node is made by hand.
        value = tf.compat.v1.AttrValue
        attributes = {
            "version": value(i=5),
            "module": value(s=_MODULE),
            "Tin": value(list=value.ListValue(type=[tf.float32.as_datatype_enum] * 2)),
            "Sout": value(list=value.ListValue(shape=[tf.TensorShape([2]).as_proto()])),
            "Tout": value(list=value.ListValue(type=[tf.float32.as_datatype_enum])),
            "platforms": value(list=value.ListValue(s=[b"CPU"])),
        }
        graph = tf.compat.v1.get_default_graph()
        operands = [x, root.v.read_value()]
        op = graph.create_op("XlaCallModule", operands, [tf.float32], attrs=attributes)
        return {"y": op.outputs[0]}

    root.f = f
    return root, f


def requests(np):
    return [("serving_default", {"x": np.float32([1, 3])})]
