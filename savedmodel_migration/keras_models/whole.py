"""Whole models of Keras 2.

Python 3.6 syntax.

A function decorated with ``model(*inputs)`` gets ``m`` (``m.L`` layers, ``m.keras``, ``m.tf``,
``m.np``, ``m.adapted``) and returns a model; the kinds of inputs are those of ``layers.py``. One
that needs what a release lacks raises AttributeError.
"""

import collections

WHOLE = collections.OrderedDict()  # name -> (inputs, function)
APPLICATIONS = []  # the names of those that keras.applications makes


def _f(*shape):
    return ("float", shape)


def _i(high, *shape):
    return ("int {}".format(high), shape)


def _s(*shape):
    return ("string red|green|blue|grey", shape)


def model(*inputs):
    def note(function):
        WHOLE[function.__name__] = (inputs, function)
        return function

    return note


@model(_f(8))
def mlp_sgd(m):
    net = m.keras.Sequential(
        [m.L.Dense(6, activation="relu", input_shape=(8,)), m.L.Dense(3, activation="softmax")]
    )
    net.compile(
        m.keras.optimizers.SGD(0.1, momentum=0.9), "categorical_crossentropy", metrics=["accuracy"]
    )
    return net


@model(_f(8))
def mlp_adam(m):
    net = m.keras.Sequential(
        [m.L.Dense(6, activation="tanh", input_shape=(8,)), m.L.Dropout(0.0), m.L.Dense(1)]
    )
    net.compile(
        m.keras.optimizers.Adam(0.01, beta_1=0.8),
        m.keras.losses.Huber(),
        metrics=["mae", m.keras.metrics.RootMeanSquaredError()],
    )
    return net


@model(_f(8))
def mlp_trained(m):
    """Saved after three steps: the optimizer has state."""
    net = m.keras.Sequential([m.L.Dense(6, activation="tanh", input_shape=(8,)), m.L.Dense(2)])
    net.compile(m.keras.optimizers.Adam(0.01), "mse")
    data = m.np.linspace(-1, 1, 32).reshape(4, 8).astype("float32")
    net.fit(data, m.np.ones((4, 2), "float32"), epochs=3, batch_size=4, verbose=0)
    return net


@model(_f(8))
def mlp_rmsprop_trained(m):
    net = m.keras.Sequential([m.L.Dense(2, input_shape=(8,), kernel_regularizer="l2")])
    net.compile(m.keras.optimizers.RMSprop(0.01, momentum=0.5), "mse")
    data = m.np.linspace(-1, 1, 32).reshape(4, 8).astype("float32")
    net.fit(data, m.np.ones((4, 2), "float32"), epochs=2, batch_size=4, verbose=0)
    return net


@model(_f(8))
def mlp_schedule(m):
    net = m.keras.Sequential([m.L.Dense(2, input_shape=(8,))])
    schedule = m.keras.optimizers.schedules.ExponentialDecay(0.1, decay_steps=10, decay_rate=0.5)
    net.compile(m.keras.optimizers.SGD(schedule), "mse")
    return net


@model(_f(8))
def not_compiled(m):
    return m.keras.Sequential([m.L.Dense(4, input_shape=(8,)), m.L.LeakyReLU(0.2), m.L.Dense(2)])


@model(_f(8))
def sequential_late(m):
    """Its input was not declared: it was built by its first call."""
    net = m.keras.Sequential(
        [m.L.Dense(4, activation="relu"), m.L.BatchNormalization(), m.L.Dense(2)]
    )
    net(m.tf.ones((1, 8)))
    net.compile("sgd", "mse")
    return net


@model(_f(8))
def sequential_nested(m):
    inner = m.keras.Sequential([m.L.Dense(4, input_shape=(8,)), m.L.ReLU()], name="inner")
    net = m.keras.Sequential([inner, m.keras.Sequential([m.L.Dense(3), m.L.Dense(2)], name="late")])
    net.build((None, 8))
    net.compile("adam", "mse")
    return net


@model(_f(12, 12, 3))
def cnn(m):
    L = m.L
    net = m.keras.Sequential([
        L.Conv2D(4, 3, activation="relu", input_shape=(12, 12, 3)), L.MaxPooling2D(), L.Conv2D(6, 3), L.BatchNormalization(),
        L.Activation("relu"), L.Flatten(), L.Dense(5, activation="softmax"),
    ])  # fmt: skip
    net.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return net


@model(_f(12, 12, 3))
def residual(m):
    L = m.L
    image = m.keras.Input((12, 12, 3))
    x = L.Conv2D(4, 3, padding="same")(image)
    for _ in range(2):
        y = L.BatchNormalization()(x)
        y = L.ReLU()(y)
        y = L.Conv2D(4, 3, padding="same", kernel_regularizer=m.keras.regularizers.l2(1e-3))(y)
        x = L.Add()([x, y])
    out = L.Dense(3)(L.GlobalAveragePooling2D()(x))
    net = m.keras.Model(image, out)
    net.compile("sgd", "mse")
    return net


@model(_f(16, 16, 2))
def unet(m):
    L = m.L
    image = m.keras.Input((16, 16, 2))
    down = L.Conv2D(4, 3, padding="same", activation="relu")(image)
    middle = L.Conv2D(6, 3, padding="same", activation="relu")(L.MaxPooling2D()(down))
    up = L.Conv2DTranspose(4, 2, strides=2)(middle)
    out = L.Conv2D(1, 1, activation="sigmoid")(L.Concatenate()([up, down]))
    net = m.keras.Model(image, out, name="unet")
    net.compile("adam", "binary_crossentropy")
    return net


@model(_f(10, 10, 3))
def separable(m):
    L = m.L
    net = m.keras.Sequential([
        L.SeparableConv2D(4, 3, input_shape=(10, 10, 3)), L.DepthwiseConv2D(3), L.PReLU(shared_axes=[1, 2]),
        L.GlobalMaxPooling2D(), L.Dense(2),
    ])  # fmt: skip
    net.compile("sgd", "mse")
    return net


@model(_f(8, 8, 8, 1))
def cnn_3d(m):
    L = m.L
    net = m.keras.Sequential(
        [L.Conv3D(2, 3, input_shape=(8, 8, 8, 1)), L.AveragePooling3D(), L.Flatten(), L.Dense(2)]
    )
    net.compile("sgd", "mse")
    return net


@model(_f(12, 4))
def wavenet(m):
    L = m.L
    steps = m.keras.Input((12, 4))
    x = steps
    for rate in (1, 2, 4):
        gate = L.Conv1D(4, 2, padding="causal", dilation_rate=rate, activation="sigmoid")(x)
        value = L.Conv1D(4, 2, padding="causal", dilation_rate=rate, activation="tanh")(x)
        x = L.add([x, L.multiply([gate, value])])
    net = m.keras.Model(steps, L.Dense(1)(x))
    net.compile("adam", "mse")
    return net


@model(_f(6, 4))
def lstm(m):
    L = m.L
    net = m.keras.Sequential(
        [L.LSTM(5, return_sequences=True, input_shape=(6, 4)), L.LSTM(3), L.Dense(2)]
    )
    net.compile("adam", "mse")
    return net


@model(_f(6, 4))
def gru_bidirectional(m):
    L = m.L
    net = m.keras.Sequential(
        [L.Bidirectional(L.GRU(3, return_sequences=True), input_shape=(6, 4)), L.GRU(2), L.Dense(2)]
    )
    net.compile("rmsprop", "mse")
    return net


@model(_i(11, 7))
def text_lstm(m):
    L = m.L
    net = m.keras.Sequential([
        L.Embedding(11, 4, mask_zero=True, input_length=7), L.Bidirectional(L.LSTM(3)), L.Dense(1, activation="sigmoid"),
    ])  # fmt: skip
    net.compile("adam", "binary_crossentropy", metrics=["accuracy", m.keras.metrics.AUC()])
    return net


@model(_i(11, 7))
def text_cnn(m):
    L = m.L
    tokens = m.keras.Input((7,), dtype="int32", name="tokens")
    x = L.Embedding(11, 4)(tokens)
    x = L.SpatialDropout1D(0.0)(x)
    parts = [L.GlobalMaxPooling1D()(L.Conv1D(3, size, activation="relu")(x)) for size in (2, 3, 4)]
    net = m.keras.Model(tokens, L.Dense(2, activation="softmax")(L.concatenate(parts)))
    net.compile("adam", "categorical_crossentropy")
    return net


@model(_f(6, 4))
def stateful_rnn(m):
    L = m.L
    net = m.keras.Sequential([L.LSTM(3, stateful=True, batch_input_shape=(3, 6, 4)), L.Dense(1)])
    net.compile("sgd", "mse")
    return net


@model(_f(6, 4), _f(5, 3))
def encoder_decoder(m):
    L = m.L
    source, target = (
        m.keras.Input((None, 4), name="source"),
        m.keras.Input((None, 3), name="target"),
    )
    _, h, c = L.LSTM(4, return_state=True)(source)
    decoded = L.LSTM(4, return_sequences=True)(target, initial_state=[h, c])
    net = m.keras.Model(
        [source, target], L.TimeDistributed(L.Dense(3, activation="softmax"))(decoded)
    )
    net.compile("rmsprop", "categorical_crossentropy")
    return net


@model(_f(4, 6, 6, 1))
def conv_lstm(m):
    L = m.L
    net = m.keras.Sequential(
        [L.ConvLSTM2D(2, 3, input_shape=(4, 6, 6, 1)), L.Flatten(), L.Dense(2)]
    )
    net.compile("sgd", "mse")
    return net


@model(_f(6, 4))
def stacked_cells(m):
    L = m.L
    net = m.keras.Sequential([L.RNN([L.LSTMCell(3), L.GRUCell(3)], input_shape=(6, 4)), L.Dense(1)])
    net.compile("sgd", "mse")
    return net


@model(_f(5, 4), _f(6, 4))
def attention(m):
    L = m.L
    query, value = m.keras.Input((5, 4)), m.keras.Input((6, 4))
    mixed = L.Attention(use_scale=True)([L.Dense(4)(query), L.Dense(4)(value)])
    added = L.AdditiveAttention()([query, mixed])
    net = m.keras.Model(
        [query, value], L.Dense(1)(L.GlobalAveragePooling1D()(L.Concatenate()([mixed, added])))
    )
    net.compile("adam", "mse")
    return net


@model(_i(13, 6))
def transformer(m):
    L = m.L
    tokens = m.keras.Input((6,), dtype="int32")
    x = L.Embedding(13, 8)(tokens)
    for _ in range(2):
        x = L.LayerNormalization(epsilon=1e-6)(L.Add()([x, L.MultiHeadAttention(2, 4)(x, x)]))
        x = L.LayerNormalization(epsilon=1e-6)(
            L.Add()([x, L.Dense(8)(L.Dense(16, activation="relu")(x))])
        )
    net = m.keras.Model(tokens, L.Dense(3)(L.GlobalAveragePooling1D()(x)))
    net.compile("adam", m.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return net


@model(_f(4), _f(3), _i(9, 1))
def three_inputs(m):
    L = m.L
    first, second = m.keras.Input((4,), name="first"), m.keras.Input((3,), name="second")
    third = m.keras.Input((1,), dtype="int32", name="third")
    parts = [L.Dense(4)(first), L.Dense(4)(second), L.Flatten()(L.Embedding(9, 4)(third))]
    net = m.keras.Model([first, second, third], L.Dense(1)(L.Average()(parts)))
    net.compile("sgd", "mse")
    return net


@model(_f(4), _f(3))
def dict_inputs(m):
    L = m.L
    given = {"b": m.keras.Input((4,), name="b"), "a": m.keras.Input((3,), name="a")}
    net = m.keras.Model(given, L.Dense(1)(L.Concatenate()([given["b"], given["a"]])))
    net.compile("sgd", "mse")
    return net


@model(_f(8))
def two_outputs(m):
    L = m.L
    x = m.keras.Input((8,))
    body = L.Dense(4, activation="relu")(x)
    net = m.keras.Model(
        x, [L.Dense(2, name="left")(body), L.Dense(1, activation="sigmoid", name="right")(body)]
    )
    net.compile(
        "sgd",
        {"left": "mse", "right": "binary_crossentropy"},
        loss_weights={"left": 0.5, "right": 2.0},
    )
    return net


@model(_f(8))
def dict_outputs(m):
    L = m.L
    x = m.keras.Input((8,))
    net = m.keras.Model(
        x, {"left": L.Dense(2, name="left")(x), "right": L.Dense(1, name="right")(x)}
    )
    net.compile("sgd", "mse")
    return net


@model(_f(4), _f(4))
def siamese(m):
    L = m.L
    tower = m.keras.Sequential(
        [L.Dense(5, activation="relu", input_shape=(4,)), L.Dense(3)], name="tower"
    )
    left, right = m.keras.Input((4,)), m.keras.Input((4,))
    net = m.keras.Model([left, right], L.Dot(axes=1, normalize=True)([tower(left), tower(right)]))
    net.compile("sgd", "mse")
    return net


@model(_f(8))
def shared_layer(m):
    L = m.L
    x = m.keras.Input((8,))
    shared = L.Dense(8, activation="tanh", name="shared")
    net = m.keras.Model(x, L.Dense(1)(shared(shared(shared(x)))))
    net.compile("adam", "mse")
    return net


@model(_f(8))
def nested(m):
    L = m.L
    a = m.keras.Input((8,))
    core = m.keras.Model(a, L.Dense(4)(a), name="core")
    b = m.keras.Input((8,))
    middle = m.keras.Model(b, L.ReLU()(core(L.Dense(8)(b))), name="middle")
    c = m.keras.Input((8,))
    net = m.keras.Model(c, L.Dense(1)(middle(c)), name="outer")
    net.compile("adam", "mse")
    return net


@model(_f(8))
def frozen_body(m):
    """Transfer learning: a body that does not train below a head that does."""
    L = m.L
    body = m.keras.Sequential(
        [L.Dense(6, input_shape=(8,)), L.BatchNormalization(), L.ReLU()], name="body"
    )
    body.trainable = False
    x = m.keras.Input((8,))
    net = m.keras.Model(x, L.Dense(2)(body(x, training=False)))
    net.compile("adam", "mse")
    return net


@model(_f(8))
def autoencoder(m):
    L = m.L
    x = m.keras.Input((8,))
    encoder = m.keras.Model(
        x, L.Dense(2, activity_regularizer="l1")(L.Dense(5, activation="relu")(x)), name="encoder"
    )
    z = m.keras.Input((2,))
    decoder = m.keras.Model(z, L.Dense(8)(L.Dense(5, activation="relu")(z)), name="decoder")
    net = m.keras.Model(x, decoder(encoder(x)))
    net.compile("adam", "mse")
    return net


@model(_f(4), _s(1), _i(9, 1))
def tabular(m):
    """Preprocessing inside the model: numbers, strings, ints."""
    L = m.L
    number, word, kind = (
        m.keras.Input((4,)),
        m.keras.Input((1,), dtype="string"),
        m.keras.Input((1,), dtype="int64"),
    )
    scaled = m.adapted(L.Normalization(), m.np.arange(16.0).reshape(4, 4))(number)
    looked = L.StringLookup(vocabulary=["red", "green", "blue"])(word)
    known = L.IntegerLookup(vocabulary=[2, 4, 6])(kind)
    parts = [scaled, L.Flatten()(L.Embedding(6, 3)(looked)), L.Flatten()(L.Embedding(6, 3)(known))]
    net = m.keras.Model([number, word, kind], L.Dense(1)(L.Concatenate()(parts)))
    net.compile("sgd", "mse")
    return net


@model(_s(1))
def text_classifier(m):
    L = m.L
    text = m.keras.Input((1,), dtype="string")
    tokens = m.adapted(
        L.TextVectorization(max_tokens=20, output_sequence_length=5),
        m.np.array(["red green", "blue red"]),
    )(text)
    x = L.GlobalAveragePooling1D()(L.Embedding(20, 4)(tokens))
    net = m.keras.Model(text, L.Dense(1, activation="sigmoid")(x))
    net.compile("adam", "binary_crossentropy")
    return net


@model(_f(10, 10, 3))
def augmented(m):
    L = m.L
    net = m.keras.Sequential([
        L.Rescaling(1.0 / 255, input_shape=(10, 10, 3)), L.RandomFlip("horizontal"), L.RandomRotation(0.1), L.Resizing(8, 8),
        L.Conv2D(3, 3), L.GlobalAveragePooling2D(), L.Dense(2),
    ])  # fmt: skip
    net.compile("adam", "mse")
    return net


@model(_f(8))
def mixed_precision(m):
    L = m.L
    policy = m.keras.mixed_precision.Policy("mixed_float16")
    x = m.keras.Input((8,))
    body = L.Dense(4, dtype=policy)(x)
    net = m.keras.Model(x, L.Dense(2, dtype="float32")(body))
    net.compile("sgd", "mse")
    return net


@model(_f(8))
def double_precision(m):
    L = m.L
    x = m.keras.Input((8,), dtype="float64")
    net = m.keras.Model(
        x, L.Dense(2, dtype="float64")(L.Dense(4, dtype="float64", activation="relu")(x))
    )
    net.compile("sgd", "mse")
    return net


@model(_f(8))
def operations(m):
    """Operations between layers."""
    L, tf = m.L, m.tf
    x = m.keras.Input((8,))
    a = L.Dense(8)(x)
    b = tf.nn.relu(a * 2.0 + x)[:, 2:6]
    net = m.keras.Model(
        x, L.Dense(1)(tf.concat([b, tf.reduce_mean(a, axis=1, keepdims=True)], axis=-1))
    )
    net.compile("sgd", "mse")
    return net


@model(_f(8))
def added_loss(m):
    L, tf = m.L, m.tf
    x = m.keras.Input((8,))
    hidden = L.Dense(4)(x)
    net = m.keras.Model(x, L.Dense(1)(hidden))
    net.add_loss(tf.reduce_mean(tf.square(hidden)) * 0.1)
    net.compile("sgd", "mse")
    return net


@model(_f(8))
def custom_layer(m):
    """A layer that nobody else has, in the middle of a functional model."""
    L = m.L

    class Scaled(L.Layer):
        def build(self, shape):
            self.scale = self.add_weight(
                name="scale",
                shape=(int(shape[-1]),),
                initializer="ones",
                regularizer=m.keras.regularizers.l2(0.1),
            )

        def call(self, inputs, training=None):
            return inputs * self.scale + (1.0 if training else 0.0)

    x = m.keras.Input((8,))
    net = m.keras.Model(x, L.Dense(2)(Scaled()(L.Dense(4)(x))))
    net.compile("sgd", "mse")
    return net


@model(_f(8))
def subclassed(m):
    L = m.L

    class Net(m.keras.Model):
        def __init__(self):
            super(Net, self).__init__()
            self.first = L.Dense(4, activation="relu")
            self.drop = L.Dropout(0.5)
            self.second = L.Dense(2)

        def call(self, inputs, training=None):
            return self.second(self.drop(self.first(inputs), training=training))

    net = Net()
    net(m.tf.ones((1, 8)))
    net.compile("sgd", "mse")
    net._set_inputs(m.tf.ones((1, 8))) if hasattr(net, "_set_inputs") else None
    return net


@model(_f(8))
def subclassed_functional(m):
    """A subclass of Model that is functional all the same."""

    class Mine(m.keras.Model):
        pass

    x = m.keras.Input((8,))
    net = Mine(x, m.L.Dense(2)(x))
    net.compile("sgd", "mse")
    return net


def _application(name, size=64, **arguments):
    def build(m):
        made = getattr(m.keras.applications, name)(
            weights=None, input_shape=(size, size, 3), classes=10, **arguments
        )
        made.compile("sgd", "categorical_crossentropy")
        return made

    build.__name__ = name
    build.source = "{} {} {} kernels as made".format(name, size, arguments)
    APPLICATIONS.append(name)
    model(_f(size, size, 3))(build)


for _name in (
    "ResNet50",
    "MobileNetV2",
    "EfficientNetB0",
    "DenseNet121",
    "MobileNet",
    "MobileNetV3Small",
    "EfficientNetV2B0",
):
    _application(_name)
_application("ResNet50V2")
_application("InceptionV3", 96)
_application("Xception", 96)
_application("NASNetMobile", 32)
_application("ConvNeXtTiny", 32)
_application("RegNetX002", 32)
