"""tf.saved_model.save of a compiled tf.keras model in 1.15: object graph with an Adam optimizer and its slot variables."""

CLAUSES = ("V1-18", "OPT-01", "OPT-02")
FEATURES = ("keras", "object_graph", "optimizer_slots", "functions", "resource_variables")
RUNTIME = "tf1.15"
REQUIRES = "tensorflow>=1.14,<2.16"  # tf.saved_model.save; Keras 3 exports another way
TOLERANCE = (1e-5, 1e-6, "trained weights; sums are ordered differently by newer kernels")


def generate(tf, rec):
    tf.enable_v2_behavior()
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Dense(3, "relu", kernel_initializer=tf.constant_initializer(rec.exact(2, 3)), input_shape=(2,), name="hidden"),
            layers.Dense(1, kernel_initializer=tf.constant_initializer(rec.exact(3, 1)), name="head"),
        ]
    )
    model.compile("adam", "mse", metrics=["mae"])
    model.fit(rec.exact(4, 2), rec.exact(4, 1), epochs=1, verbose=0, shuffle=False)
    tf.saved_model.save(model, rec.model)
    rec.live({"serving_default": lambda hidden_input: {"head": model(hidden_input)}})
    rec.ask("serving_default", {"hidden_input": rec.exact(1, 2)})
    rec.ask("serving_default", {"hidden_input": rec.exact(5, 2)})
