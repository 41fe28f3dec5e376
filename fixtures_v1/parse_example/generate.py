"""parse_example with fixed, defaulted, variable-length and ragged-sequence features, and parse_sequence_example."""

CLAUSES = ("V1-02",)
FEATURES = ("parse_example", "string_io", "sparse_ops", "regress")
RUNTIME = "tf1.14"


def generate(tf, rec):
    serialized = tf.placeholder(tf.string, [None], "input_example_tensor")
    parsed = tf.parse_example(
        serialized,
        {
            "age": tf.FixedLenFeature([], tf.int64, default_value=18),
            "height": tf.FixedLenFeature([2], tf.float32),
            "tags": tf.VarLenFeature(tf.string),
            "scores": tf.FixedLenSequenceFeature([], tf.float32, allow_missing=True, default_value=-1.0),
        },
    )
    total = tf.to_float(parsed["age"]) + tf.reduce_sum(parsed["height"], 1)
    single = tf.placeholder(tf.string, [], "sequence")
    context, sequences = tf.parse_single_sequence_example(
        single, {"id": tf.FixedLenFeature([], tf.string)}, {"steps": tf.FixedLenSequenceFeature([2], tf.int64)}
    )
    sess = rec.session()
    rec.export(
        sess,
        {
            "serving_default": rec.signature(
                {"examples": serialized},
                {
                    "age": parsed["age"],
                    "total": total,
                    "scores": parsed["scores"],
                    "tags": tf.sparse_tensor_to_dense(parsed["tags"], default_value=""),
                },
            ),
            "regression": tf.saved_model.signature_def_utils.regression_signature_def(serialized, total),
            "sequence": rec.signature({"example": single}, {"id": context["id"], "steps": sequences["steps"]}),
        },
    )
    rows = [rec.example(age=[40], height=[1.5, 0.5], tags=["a", "b"], scores=[1.0, 2.0, 3.0]), rec.example(height=[1.0, 0.0])]
    rec.ask("serving_default", {"examples": rows[:1]})
    rec.ask("serving_default", {"examples": rows + rows[:1]})
    rec.ask("serving_default", {"examples": []})
    rec.ask("regression", {"inputs": rows})
    example = tf.train.SequenceExample()
    example.context.feature["id"].bytes_list.value.append(b"\x00bytes\xff")
    for step in ([1, 2], [3, -4]):
        example.feature_lists.feature_list["steps"].feature.add().int64_list.value.extend(step)
    rec.ask("sequence", {"example": example.SerializeToString(deterministic=True)})
