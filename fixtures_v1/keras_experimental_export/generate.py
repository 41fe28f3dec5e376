"""tf.keras.experimental.export_saved_model of a compiled model: train, eval and serve MetaGraphs, object-based checkpoint."""

CLAUSES = ("V1-04", "V1-18", "COMPAT-02")
FEATURES = ("keras", "multi_metagraph", "object_based_checkpoint", "optimizer_slots", "resource_variables")
RUNTIME = "tf1.14"
REQUIRES = "tensorflow>=1.14,<2.11"  # the function is in these only
TOLERANCE = (1e-5, 1e-6, "trained weights; sums are ordered differently by newer kernels")


def generate(tf, rec):
    tf.set_random_seed(1)
    tf.keras.backend.set_session(rec.session())
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Dense(3, "relu", kernel_initializer=tf.constant_initializer(rec.exact(2, 3)), input_shape=(2,), name="hidden"),
            layers.Dense(1, kernel_initializer=tf.constant_initializer(rec.exact(3, 1)), name="head"),
        ]
    )
    model.compile("adam", "mse")
    model.fit(rec.exact(4, 2), rec.exact(4, 1), epochs=1, verbose=0, shuffle=False)
    tf.keras.experimental.export_saved_model(model, rec.model)

    def serve(hidden_input):
        return {"head": model.predict_on_batch(hidden_input)}

    def supervised(hidden_input, head_target):
        loss = model.test_on_batch(hidden_input, head_target)
        return {"loss": loss, "predictions/head": model.predict_on_batch(hidden_input)}

    rec.live({"serving_default": serve})
    rec.ask("serving_default", {"hidden_input": rec.exact(1, 2)})
    rec.ask("serving_default", {"hidden_input": rec.exact(5, 2)})
    for mode in ("eval", "train"):
        rec.live({mode: supervised}, tags=(mode,))
        rec.ask(mode, {"hidden_input": rec.exact(3, 2), "head_target": rec.exact(3, 1)}, tags=(mode,))
