"""A TF 1.4 export with the old habits: signature `predict_images`, keys `inputs` and `outputs`, session-bundle style names."""

from fixtures_v1.lookup import lookup

CLAUSES = ("V1-01", "V1-02")
FEATURES = ("builder", "ref_variables", "legacy_names")
RUNTIME = "tf1.4"


def generate(tf, rec):
    x = tf.placeholder(tf.float32, [None, 4], "x")
    w = tf.Variable(rec.exact(4, 3), name="Variable")
    b = tf.Variable(rec.exact(3), name="Variable")
    y = tf.nn.relu(tf.matmul(x, w) + b, name="y")
    scores, indices = tf.nn.top_k(y, 3)
    table = lookup(tf).index_to_string_table_from_tensor(tf.constant(["red", "green", "blue"]))
    classes = table.lookup(tf.to_int64(indices))
    sess = rec.initialized_session()
    signatures = tf.saved_model.signature_def_utils
    rec.export(
        sess,
        {
            "predict_images": rec.signature({"images": x}, {"scores": y}),
            "serving_default": rec.signature({"inputs": x}, {"outputs": y}),
            "classify": signatures.build_signature_def(
                {"inputs": tf.saved_model.utils.build_tensor_info(x)},
                {
                    "classes": tf.saved_model.utils.build_tensor_info(classes),
                    "scores": tf.saved_model.utils.build_tensor_info(scores),
                },
                "tensorflow/serving/classify",
            ),
        },
        legacy_init_op=tf.group(tf.tables_initializer(), name="legacy_init_op"),
    )
    for key, name in (("predict_images", "images"), ("serving_default", "inputs"), ("classify", "inputs")):
        rec.ask(key, {name: rec.exact(1, 4)})
        rec.ask(key, {name: rec.exact(3, 4)})
