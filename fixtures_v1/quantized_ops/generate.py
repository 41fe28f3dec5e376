"""Fake quantisation, QuantizeV2, quantized multiplication and Dequantize, with quint8 and qint32 outputs."""

CLAUSES = ("V1-02",)
FEATURES = ("quantized_ops", "dtypes")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.14"  # tf.raw_ops
TOLERANCE = (1e-6, 0.0, "the step of fake quantisation is computed with another rounding by newer kernels")


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, 4], "x")
    faked = tf.quantization.fake_quant_with_min_max_args(x, -1.0, 1.0, num_bits=8)
    low, high = tf.constant(0.0), tf.constant(255.0 / 64)
    quantized = tf.quantization.quantize(x, low, high, tf.quint8)
    weights = tf.quantization.quantize(tf.abs(tf.constant(rec.exact(4, 2))), low, high, tf.quint8)
    product = tf.raw_ops.QuantizedMatMul(
        a=quantized.output, b=weights.output, min_a=low, max_a=high, min_b=low, max_b=high, Toutput=tf.qint32
    )
    sess = rec.session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"x": x},
                {
                    "faked": faked,
                    "quantized": quantized.output,
                    "product": product.out,
                    "back": tf.quantization.dequantize(quantized.output, quantized.output_min, quantized.output_max),
                },
            )
        },
    )
    rec.ask("serving_default", {"x": [[0.0, 0.5, 1.0, 2.0]]})
    rec.ask("serving_default", {"x": [[-1.0, 3.0, 0.25, 9.0], [1.0, 1.0, 1.0, 1.0]]})
