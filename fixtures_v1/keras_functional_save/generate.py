"""model.save(save_format="tf") of an uncompiled functional model in 1.15: two inputs, two outputs, LSTM, batch normalisation."""

CLAUSES = ("V1-18", "COMPAT-02")
FEATURES = ("keras", "object_graph", "functions", "lstm", "batch_norm", "control_flow_v2")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.15,<2.16"  # save_format is refused before; Keras 3 does not know it
TOLERANCE = (1e-5, 1e-6, "sigmoid, tanh and softmax are approximated differently by newer kernels")


def generate(tf, rec):
    tf.enable_v2_behavior()
    layers, constant = tf.keras.layers, tf.constant_initializer
    words = tf.keras.Input([None], dtype="int64", name="words")
    price = tf.keras.Input([2], name="price")
    x = layers.Embedding(6, 3, embeddings_initializer=constant(rec.exact(6, 3)), name="embedding")(words)
    x = layers.LSTM(2, kernel_initializer=constant(rec.exact(3, 8)), recurrent_initializer=constant(rec.exact(2, 8)))(x)
    y = layers.BatchNormalization(name="norm")(layers.concatenate([x, price]))
    kind = layers.Dense(3, "softmax", kernel_initializer=constant(rec.exact(4, 3)), name="kind")(y)
    value = layers.Dense(1, kernel_initializer=constant(rec.exact(4, 1)), name="value")(layers.Dropout(0.5)(y))
    model = tf.keras.Model([words, price], [kind, value])
    model.save(rec.model, save_format="tf")

    def live(words, price):
        kind, value = model([words, price], training=False)
        return {"kind": kind, "value": value}

    rec.live({"serving_default": rec.v2().function(live)})  # eager kernels round differently in some versions
    rec.ask("serving_default", {"words": [[1, 2, 5]], "price": rec.exact(1, 2)})
    rec.ask("serving_default", {"words": [[1, 0], [3, 3], [5, 4]], "price": rec.exact(3, 2)})
