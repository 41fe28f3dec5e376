"""One row for each way to use a layer.

Python 3.6 syntax.

``LAYERS[layer]`` holds rows ``(variant, inputs, code)``. ``code`` is an expression of the tensors
``x`` (a single tensor where there is one input), with the names ``L`` (layers, wherever the release
keeps them), ``keras``, ``tf``, ``np`` and ``adapted(layer, data)``. ``inputs`` are tuples ``(kind,
shape)``: ``"float"``, ``"int N"`` (below N), ``"string a|b"`` (one of the words).
"""


def _f(*shape):
    return ("float", shape)


def _i(high, *shape):
    return ("int {}".format(high), shape)


def _s(*shape):
    return ("string red|green|blue|grey", shape)


VECTOR = (_f(8),)
STEPS = (_f(6, 4),)
IMAGE = (_f(8, 8, 3),)
VOLUME = (_f(6, 6, 6, 2),)
FILM = (_f(4, 6, 6, 2),)
MASKED = "L.Masking(0.0)(x)"


def _pooling():
    rows = {}
    for kind in ("Max", "Average"):
        for rank, inputs in ((1, STEPS), (2, IMAGE), (3, VOLUME)):
            rows["{}Pooling{}D".format(kind, rank)] = [
                ("plain", inputs, "L.{}Pooling{}D()(x)".format(kind, rank)),
                (
                    "same",
                    inputs,
                    "L.{}Pooling{}D(3, strides=2, padding='same')(x)".format(kind, rank),
                ),
            ]
            rows["Global{}Pooling{}D".format(kind, rank)] = [
                ("plain", inputs, "L.Global{}Pooling{}D()(x)".format(kind, rank))
            ]
        rows["Global{}Pooling2D".format(kind)].append(
            ("keepdims", IMAGE, "L.Global{}Pooling2D(keepdims=True)(x)".format(kind))
        )
    rows["GlobalAveragePooling1D"].append(
        ("mask", STEPS, "L.GlobalAveragePooling1D()(" + MASKED + ")")
    )
    return rows


def _merging():
    two, three = (_f(4), _f(4)), (_f(4), _f(4), _f(4))
    rows = {
        name: [
            ("three", three, "L.{}()(x)".format(name)),
            ("broadcast", (_f(3, 4), _f(1, 4)), "L.{}()(x)".format(name)),
        ]
        for name in ("Add", "Multiply", "Average", "Maximum", "Minimum")
    }
    rows["Subtract"] = [("plain", two, "L.Subtract()(x)")]
    rows["Concatenate"] = [
        ("plain", three, "L.Concatenate()(x)"),
        ("axis", (_f(3, 4), _f(2, 4)), "L.Concatenate(axis=1)(x)"),
    ]
    rows["Dot"] = [
        ("plain", two, "L.Dot(axes=1)(x)"),
        ("normalized", two, "L.Dot(axes=1, normalize=True)(x)"),
        ("matrices", (_f(3, 4), _f(5, 4)), "L.Dot(axes=(2, 2))(x)"),
    ]
    return rows


def _recurrent():
    rows = {}
    for name in ("SimpleRNN", "LSTM", "GRU"):
        rows[name] = [
            ("plain", STEPS, "L.{}(3)(x)".format(name)),
            ("sequences", STEPS, "L.{}(3, return_sequences=True)(x)".format(name)),
            ("state", STEPS, "L.{}(3, return_state=True)(x)".format(name)),
            (
                "backwards",
                STEPS,
                "L.{}(3, go_backwards=True, return_sequences=True)(x)".format(name),
            ),
            ("mask", STEPS, "L.{}(3)({})".format(name, MASKED)),
            ("unroll", STEPS, "L.{}(3, unroll=True)(x)".format(name)),
            ("no bias", STEPS, "L.{}(3, use_bias=False, activation='relu')(x)".format(name)),
            ("dropout", STEPS, "L.{}(3, dropout=0.2, recurrent_dropout=0.1)(x)".format(name)),
            (
                "regularized",
                STEPS,
                "L.{}(3, kernel_regularizer='l2', recurrent_regularizer='l1')(x)".format(name),
            ),
            ("cell", STEPS, "L.RNN(L.{}Cell(3))(x)".format(name)),
        ]
        states = 2 if name == "LSTM" else 1
        initial = "x[1:]" if states == 2 else "x[1]"
        rows[name].append(
            (
                "initial state",
                STEPS + (_f(3),) * states,
                "L.{}(3)(x[0], initial_state={})".format(name, initial),
            )
        )
    rows["LSTM"] += [
        ("implementation 1", STEPS, "L.LSTM(3, implementation=1)(x)"),
        ("no forget bias", STEPS, "L.LSTM(3, unit_forget_bias=False)(x)"),
    ]
    rows["GRU"] += [
        ("reset before", STEPS, "L.GRU(3, reset_after=False)(x)"),
        ("compat.v1", STEPS, "tf.compat.v1.keras.layers.GRU(3)(x)"),
    ]
    rows["LSTM"].append(("compat.v1", STEPS, "tf.compat.v1.keras.layers.LSTM(3)(x)"))
    rows["SimpleRNNCell"] = [
        ("in RNN", STEPS, "L.RNN(L.SimpleRNNCell(3), return_sequences=True)(x)")
    ]
    rows["LSTMCell"] = [("in RNN", STEPS, "L.RNN(L.LSTMCell(3), return_sequences=True)(x)")]
    rows["GRUCell"] = [("in RNN", STEPS, "L.RNN(L.GRUCell(3), return_sequences=True)(x)")]
    rows["StackedRNNCells"] = [
        ("plain", STEPS, "L.RNN(L.StackedRNNCells([L.LSTMCell(3), L.GRUCell(2)]))(x)"),
        (
            "list",
            STEPS,
            "L.RNN([L.SimpleRNNCell(3), L.SimpleRNNCell(2)], return_sequences=True)(x)",
        ),
    ]
    rows["RNN"] = [("plain", STEPS, "L.RNN(L.SimpleRNNCell(4), go_backwards=True)(x)")]
    rows["Bidirectional"] = [
        ("LSTM", STEPS, "L.Bidirectional(L.LSTM(3))(x)"),
        ("sum", STEPS, "L.Bidirectional(L.GRU(3, return_sequences=True), merge_mode='sum')(x)"),
        (
            "backward layer",
            STEPS,
            (
                "L.Bidirectional(L.LSTM(3), backward_layer=L.LSTM(3, go_backwards=True,"
                " activation='relu'))(x)"
            ),
        ),
        ("two outputs", STEPS, "L.Bidirectional(L.SimpleRNN(3), merge_mode=None)(x)"),
        ("mask", STEPS, "L.Bidirectional(L.LSTM(3))(" + MASKED + ")"),
        ("state", STEPS, "L.Bidirectional(L.LSTM(3, return_state=True))(x)"),
    ]
    rows["TimeDistributed"] = [
        ("Dense", STEPS, "L.TimeDistributed(L.Dense(3))(x)"),
        ("Conv2D", FILM, "L.TimeDistributed(L.Conv2D(3, 2))(x)"),
        (
            "model",
            STEPS,
            "L.TimeDistributed(keras.Sequential([L.Dense(3, input_shape=(4,)), L.Dense(2)]))(x)",
        ),
    ]
    for rank, inputs in ((1, (_f(4, 6, 2),)), (2, FILM), (3, (_f(3, 4, 4, 4, 2),))):
        name = "ConvLSTM{}D".format(rank)
        rows[name] = [
            ("plain", inputs, "L.{}(2, 2)(x)".format(name)),
            (
                "sequences",
                inputs,
                "L.{}(2, 3, padding='same', return_sequences=True)(x)".format(name),
            ),
        ]
    return rows


def _convolution():
    rows = {}
    for rank, inputs in ((1, STEPS), (2, IMAGE), (3, VOLUME)):
        name = "Conv{}D".format(rank)
        rows[name] = [
            ("plain", inputs, "L.{}(3, 2)(x)".format(name)),
            (
                "same",
                inputs,
                "L.{}(3, 3, strides=2, padding='same', activation='relu', use_bias=False)(x)".format(
                    name
                ),
            ),
            ("dilation", inputs, "L.{}(3, 2, dilation_rate=2)(x)".format(name)),
            (
                "groups",
                inputs,
                "L.{}({}, 2, groups={})(x)".format(name, *((3, 3) if rank == 2 else (2, 2))),
            ),
        ]
        rows[name + "Transpose"] = [
            ("plain", inputs, "L.{}Transpose(2, 3)(x)".format(name)),
            ("same", inputs, "L.{}Transpose(2, 3, strides=2, padding='same')(x)".format(name)),
            (
                "output padding",
                inputs,
                "L.{}Transpose(2, 3, strides=2, output_padding=1)(x)".format(name),
            ),
        ]
    rows["Conv1D"].append(("causal", STEPS, "L.Conv1D(3, 2, padding='causal', dilation_rate=2)(x)"))
    for rank, inputs in ((1, STEPS), (2, IMAGE)):
        rows["SeparableConv{}D".format(rank)] = [
            ("plain", inputs, "L.SeparableConv{}D(3, 2)(x)".format(rank)),
            (
                "multiplier",
                inputs,
                "L.SeparableConv{}D(3, 3, depth_multiplier=2, padding='same')(x)".format(rank),
            ),
        ]
        rows["DepthwiseConv{}D".format(rank)] = [
            ("plain", inputs, "L.DepthwiseConv{}D(2)(x)".format(rank)),
            (
                "multiplier",
                inputs,
                "L.DepthwiseConv{}D(3, depth_multiplier=2, padding='same')(x)".format(rank),
            ),
        ]
    rows["UpSampling1D"] = [("plain", STEPS, "L.UpSampling1D(2)(x)")]
    rows["UpSampling2D"] = [
        ("plain", IMAGE, "L.UpSampling2D((2, 3))(x)"),
        ("bilinear", IMAGE, "L.UpSampling2D(2, interpolation='bilinear')(x)"),
    ]
    rows["UpSampling3D"] = [("plain", VOLUME, "L.UpSampling3D(2)(x)")]
    for what in ("ZeroPadding", "Cropping"):
        rows[what + "1D"] = [("plain", STEPS, "L.{}1D((1, 2))(x)".format(what))]
        rows[what + "2D"] = [("plain", IMAGE, "L.{}2D(((1, 2), (0, 1)))(x)".format(what))]
        rows[what + "3D"] = [("plain", VOLUME, "L.{}3D(((1, 2), (0, 1), (1, 1)))(x)".format(what))]
    return rows


def _normalization():
    return {
        "BatchNormalization": [
            ("plain", VECTOR, "L.BatchNormalization()(x)"),
            ("image", IMAGE, "L.BatchNormalization(momentum=0.9, epsilon=0.01)(x)"),
            ("axis 1", IMAGE, "L.BatchNormalization(axis=1)(x)"),
            ("axis list", IMAGE, "L.BatchNormalization(axis=[3])(x)"),
            ("no scale", IMAGE, "L.BatchNormalization(scale=False, center=False)(x)"),
            ("frozen", IMAGE, "L.BatchNormalization(trainable=False)(x)"),
            ("compat.v1", IMAGE, "tf.compat.v1.keras.layers.BatchNormalization()(x)"),
            ("synchronized", IMAGE, "L.BatchNormalization(synchronized=True)(x)"),
            ("SyncBatchNormalization", IMAGE, "L.SyncBatchNormalization()(x)"),
        ],
        "LayerNormalization": [
            ("plain", VECTOR, "L.LayerNormalization()(x)"),
            ("axes", STEPS, "L.LayerNormalization(axis=[1, 2])(x)"),
            ("no scale", STEPS, "L.LayerNormalization(scale=False, epsilon=1e-5)(x)"),
        ],
        "GroupNormalization": [("plain", (_f(4, 4, 8),), "L.GroupNormalization(groups=4)(x)")],
        "UnitNormalization": [("plain", VECTOR, "L.UnitNormalization()(x)")],
        "SpectralNormalization": [("Dense", VECTOR, "L.SpectralNormalization(L.Dense(3))(x)")],
    }


def _attention():
    pair = (_f(5, 4), _f(6, 4))
    rows = {}
    for name in ("Attention", "AdditiveAttention"):
        rows[name] = [
            ("plain", pair, "L.{}()(x)".format(name)),
            ("three", pair + (_f(6, 4),), "L.{}()(x)".format(name)),
            ("scale", pair, "L.{}(use_scale={})(x)".format(name, name == "Attention")),
            ("causal", (_f(5, 4),), "L.{}(causal=True)([x, x])".format(name)),
            ("use_causal_mask", (_f(5, 4),), "L.{}()([x, x], use_causal_mask=True)".format(name)),
        ]
    rows["Attention"].append(("concat", pair, "L.Attention(score_mode='concat')(x)"))
    rows["MultiHeadAttention"] = [
        ("plain", pair, "L.MultiHeadAttention(2, 3)(x[0], x[1])"),
        (
            "self",
            (_f(5, 4),),
            "L.MultiHeadAttention(2, 3, value_dim=5, use_bias=False, output_shape=6)(x, x)",
        ),
        ("scores", (_f(5, 4),), "L.MultiHeadAttention(2, 3)(x, x, return_attention_scores=True)"),
        ("axes", (_f(3, 4, 5),), "L.MultiHeadAttention(2, 3, attention_axes=(2,))(x, x)"),
        ("key", pair + (_f(6, 4),), "L.MultiHeadAttention(2, 3)(x[0], x[1], x[2])"),
        ("use_causal_mask", (_f(5, 4),), "L.MultiHeadAttention(2, 3)(x, x, use_causal_mask=True)"),
    ]
    return rows


def _plain():
    regularized = "L.Dense(3, kernel_regularizer=keras.regularizers.{})(x)"
    return {
        "Dense": (
            [
                ("plain", VECTOR, "L.Dense(3)(x)"),
                ("relu", VECTOR, "L.Dense(3, activation='relu', use_bias=False)(x)"),
                ("steps", STEPS, "L.Dense(3, activation=tf.nn.tanh)(x)"),
                ("l1", VECTOR, regularized.format("l1(0.01)")),
                ("l2", VECTOR, regularized.format("l2(0.01)")),
                ("l1_l2", VECTOR, regularized.format("l1_l2(0.01, 0.02)")),
                ("orthogonal", VECTOR, regularized.format("OrthogonalRegularizer(0.01)")),
                (
                    "regularizers",
                    VECTOR,
                    "L.Dense(3, bias_regularizer='l2', activity_regularizer='l1')(x)",
                ),
                ("frozen", VECTOR, "L.Dense(3, trainable=False)(x)"),
            ]
            + [
                (name, VECTOR, "L.Dense(3, kernel_constraint=keras.constraints.{})(x)".format(code))
                for name, code in (
                    ("MaxNorm", "MaxNorm(2.0, axis=1)"),
                    ("MinMaxNorm", "MinMaxNorm(0.1, 0.5, rate=0.5)"),
                    ("NonNeg", "NonNeg()"),
                    ("UnitNorm", "UnitNorm(axis=0)"),
                )
            ]
            + [
                (
                    "initializer " + name,
                    VECTOR,
                    "L.Dense(3, kernel_initializer=keras.initializers.{})(x)".format(code),
                )
                for name, code in (
                    ("constant", "Constant(0.3)"),
                    ("identity", "Identity(2.0)"),
                    ("ones", "Ones()"),
                    ("orthogonal", "Orthogonal(seed=3)"),
                    ("normal", "RandomNormal(0.1, 0.2, seed=3)"),
                    ("uniform", "RandomUniform(-0.2, 0.2)"),
                    ("truncated", "TruncatedNormal(stddev=0.1)"),
                    ("scaling", "VarianceScaling(2.0, 'fan_out', 'uniform')"),
                    ("he", "he_normal(seed=3)"),
                    ("lecun", "lecun_uniform()"),
                    ("glorot", "GlorotNormal()"),
                )
            ]
        ),
        "Activation": (
            [
                (name, VECTOR, "L.Activation('{}')(x)".format(name))
                for name in (
                    "elu",
                    "exponential",
                    "gelu",
                    "hard_sigmoid",
                    "linear",
                    "relu",
                    "selu",
                    "sigmoid",
                    "softmax",
                    "softplus",
                    "softsign",
                    "swish",
                    "tanh",
                    "mish",
                )
            ]
            + [
                ("tf.nn.relu6", VECTOR, "L.Activation(tf.nn.relu6)(x)"),
                ("tf.nn.silu", VECTOR, "L.Activation(tf.nn.swish)(x)"),
            ]
        ),
        "Embedding": [
            ("plain", (_i(7, 5),), "L.Embedding(7, 3)(x)"),
            (
                "mask",
                (_i(7, 5),),
                "L.GlobalAveragePooling1D()(L.Embedding(7, 3, mask_zero=True)(x))",
            ),
            (
                "mask LSTM",
                (_i(7, 5),),
                "L.LSTM(2)(L.Embedding(7, 3, mask_zero=True, input_length=5)(x))",
            ),
            ("float", (_f(5),), "L.Embedding(7, 3)(x)"),
        ],
        "EinsumDense": [
            (
                "plain",
                STEPS,
                "L.EinsumDense('abc,cd->abd', output_shape=(None, 5), bias_axes='d')(x)",
            ),
            (
                "activation",
                VECTOR,
                "L.EinsumDense('ab,bc->ac', output_shape=3, activation='relu')(x)",
            ),
        ],
        "Dropout": [
            ("plain", VECTOR, "L.Dropout(0.3)(x)"),
            ("noise", STEPS, "L.Dropout(0.3, noise_shape=(None, 1, 4), seed=3)(x)"),
        ],
        "SpatialDropout1D": [("plain", STEPS, "L.SpatialDropout1D(0.3)(x)")],
        "SpatialDropout2D": [("plain", IMAGE, "L.SpatialDropout2D(0.3)(x)")],
        "SpatialDropout3D": [("plain", VOLUME, "L.SpatialDropout3D(0.3)(x)")],
        "GaussianNoise": [("plain", VECTOR, "L.GaussianNoise(0.2)(x)")],
        "GaussianDropout": [("plain", VECTOR, "L.GaussianDropout(0.2)(x)")],
        "AlphaDropout": [("plain", VECTOR, "L.AlphaDropout(0.2)(x)")],
        "ActivityRegularization": [
            ("plain", VECTOR, "L.ActivityRegularization(l1=0.01, l2=0.02)(x)")
        ],
        "Flatten": [
            ("plain", IMAGE, "L.Flatten()(x)"),
            ("first", IMAGE, "L.Flatten(data_format='channels_first')(x)"),
        ],
        "Reshape": [
            ("plain", VECTOR, "L.Reshape((2, 4))(x)"),
            ("unknown", VECTOR, "L.Reshape((4, -1))(x)"),
        ],
        "Permute": [("plain", IMAGE, "L.Permute((3, 1, 2))(x)")],
        "RepeatVector": [("plain", VECTOR, "L.RepeatVector(3)(x)")],
        "Masking": [("plain", STEPS, "L.LSTM(3)(L.Masking(mask_value=0.5)(x))")],
        "InputLayer": [
            ("plain", VECTOR, "L.Dense(2)(x)"),
            (
                "batch",
                VECTOR,
                "keras.Sequential([L.InputLayer(batch_input_shape=(3, 8)), L.Dense(2)])(x)",
            ),
            (
                "named",
                VECTOR,
                "keras.Sequential([L.InputLayer(input_shape=(8,), name='first'), L.Dense(2)])(x)",
            ),
        ],
        "Identity": [("plain", VECTOR, "L.Identity()(x)")],
        "Lambda": [
            ("plain", VECTOR, "L.Lambda(lambda t: t * 2.0 + 1.0)(x)"),
            ("arguments", VECTOR, "L.Lambda(lambda t, by: t * by, arguments={'by': 3.0})(x)"),
        ],
        "ReLU": [
            ("plain", VECTOR, "L.ReLU()(x)"),
            ("arguments", VECTOR, "L.ReLU(max_value=1.0, negative_slope=0.1, threshold=0.2)(x)"),
        ],
        "LeakyReLU": [
            ("plain", VECTOR, "L.LeakyReLU()(x)"),
            ("alpha", VECTOR, "L.LeakyReLU(0.1)(x)"),
        ],
        "PReLU": [
            ("plain", VECTOR, "L.PReLU()(x)"),
            ("shared", IMAGE, "L.PReLU(shared_axes=[1, 2])(x)"),
        ],
        "ELU": [("plain", VECTOR, "L.ELU(0.5)(x)")],
        "Softmax": [("plain", VECTOR, "L.Softmax()(x)"), ("axis", STEPS, "L.Softmax(axis=1)(x)")],
        "ThresholdedReLU": [("plain", VECTOR, "L.ThresholdedReLU(0.4)(x)")],
    }


def _preprocessing():
    words = "['red', 'green', 'blue']"
    return {
        "Normalization": [
            ("adapted", VECTOR, "adapted(L.Normalization(), np.arange(32.0).reshape(4, 8))(x)"),
            (
                "scalar",
                (_f(1),),
                "adapted(L.Normalization(axis=None), np.arange(4.0).reshape(4, 1))(x)",
            ),
            ("given", (_f(2),), "L.Normalization(mean=[1.0, 2.0], variance=[2.0, 3.0])(x)"),
            ("invert", (_f(2),), "L.Normalization(mean=1.5, variance=2.0, invert=True)(x)"),
        ],
        "Rescaling": [("plain", IMAGE, "L.Rescaling(1.0 / 255, offset=-0.5)(x)")],
        "Resizing": [
            ("plain", IMAGE, "L.Resizing(5, 6)(x)"),
            ("nearest", IMAGE, "L.Resizing(12, 10, interpolation='nearest')(x)"),
            ("crop", IMAGE, "L.Resizing(5, 6, crop_to_aspect_ratio=True)(x)"),
        ],
        "CenterCrop": [("plain", IMAGE, "L.CenterCrop(5, 4)(x)")],
        "Discretization": [
            ("given", (_f(3),), "L.Discretization(bin_boundaries=[-0.5, 0.0, 0.5])(x)"),
            (
                "adapted",
                (_f(3),),
                "adapted(L.Discretization(num_bins=4), np.arange(12.0).reshape(12, 1))(x)",
            ),
            (
                "one_hot",
                (_f(1),),
                "L.Discretization(bin_boundaries=[0.0, 0.5], output_mode='one_hot')(x)",
            ),
        ],
        "CategoryEncoding": [
            (
                "multi_hot",
                (_i(5, 3),),
                "L.CategoryEncoding(num_tokens=5, output_mode='multi_hot')(x)",
            ),
            ("one_hot", (_i(5, 1),), "L.CategoryEncoding(num_tokens=5, output_mode='one_hot')(x)"),
            ("count", (_i(5, 3),), "L.CategoryEncoding(num_tokens=5, output_mode='count')(x)"),
            ("binary", (_i(5, 3),), "L.CategoryEncoding(max_tokens=5, output_mode='binary')(x)"),
        ],
        "Hashing": [
            ("plain", (_s(2),), "L.Hashing(num_bins=5)(x)"),
            ("salt", (_s(2),), "L.Hashing(num_bins=5, salt=17)(x)"),
            ("ints", (_i(50, 2),), "L.Hashing(num_bins=5)(x)"),
        ],
        "HashedCrossing": [
            ("plain", (_s(1), _i(9, 1)), "L.HashedCrossing(num_bins=7)((x[0], x[1]))")
        ],
        "IntegerLookup": [
            ("given", (_i(20, 3),), "L.IntegerLookup(vocabulary=[3, 5, 12])(x)"),
            (
                "adapted",
                (_i(20, 3),),
                "adapted(L.IntegerLookup(), np.array([[3], [5], [3], [12]]))(x)",
            ),
            (
                "multi_hot",
                (_i(20, 3),),
                (
                    "L.IntegerLookup(vocabulary=[3, 5, 12], output_mode='multi_hot',"
                    " num_oov_indices=2)(x)"
                ),
            ),
        ],
        "StringLookup": [
            ("given", (_s(2),), "L.StringLookup(vocabulary=" + words + ")(x)"),
            (
                "adapted",
                (_s(2),),
                "adapted(L.StringLookup(), np.array([['red'], ['green'], ['red']]))(x)",
            ),
            (
                "mask",
                (_s(2),),
                "L.StringLookup(vocabulary=" + words + ", mask_token='', num_oov_indices=2)(x)",
            ),
            (
                "one_hot",
                (_s(1),),
                "L.StringLookup(vocabulary=" + words + ", output_mode='one_hot')(x)",
            ),
            ("invert", (_i(4, 2),), "L.StringLookup(vocabulary=" + words + ", invert=True)(x)"),
            (
                "tf_idf",
                (_s(2),),
                "L.StringLookup(vocabulary="
                + words
                + ", idf_weights=[0.3, 0.5, 0.7], output_mode='tf_idf')(x)",
            ),
        ],
        "TextVectorization": [
            (
                "adapted",
                (_s(1),),
                (
                    "adapted(L.TextVectorization(output_sequence_length=4), np.array(['red green',"
                    " 'red']))(x)"
                ),
            ),
            ("given", (_s(1),), "L.TextVectorization(vocabulary=" + words + ")(x)"),
            (
                "multi_hot",
                (_s(1),),
                "L.TextVectorization(vocabulary=" + words + ", output_mode='multi_hot')(x)",
            ),
            (
                "count",
                (_s(1),),
                (
                    "adapted(L.TextVectorization(output_mode='count', max_tokens=9), np.array(['red"
                    " green', 'red']))(x)"
                ),
            ),
            (
                "tf_idf",
                (_s(1),),
                (
                    "adapted(L.TextVectorization(output_mode='tf-idf'), np.array(['red green',"
                    " 'red']))(x)"
                ),
            ),
            (
                "tf_idf later",
                (_s(1),),
                (
                    "adapted(L.TextVectorization(output_mode='tf_idf'), np.array(['red green',"
                    " 'red']))(x)"
                ),
            ),
            (
                "ngrams",
                (_s(1),),
                (
                    "adapted(L.TextVectorization(ngrams=2, output_mode='count'), np.array(['red"
                    " green red', 'blue']))(x)"
                ),
            ),
        ],
        "RandomZoom": [("plain", IMAGE, "L.RandomZoom(0.2, 0.1)(x)")],
        "RandomFlip": [("plain", IMAGE, "L.RandomFlip('horizontal')(x)")],
        "RandomRotation": [("plain", IMAGE, "L.RandomRotation(0.2)(x)")],
        "RandomTranslation": [("plain", IMAGE, "L.RandomTranslation(0.2, 0.1)(x)")],
        "RandomContrast": [("plain", IMAGE, "L.RandomContrast(0.2)(x)")],
        "RandomCrop": [("plain", IMAGE, "L.RandomCrop(4, 4)(x)")],
        "RandomBrightness": [("plain", IMAGE, "L.RandomBrightness(0.2)(x)")],
    }


def _operations():
    """Operations of TensorFlow on the tensors of a functional model: layers of their own since
    2.0.
    """
    pair = (_f(4), _f(4))
    return {
        "operations": [
            ("arithmetic", pair, "(x[0] + 2.0) * x[1] - x[0] / 3.0"),
            ("reversed", VECTOR, "1.0 - 2.0 / (x + 5.0)"),
            ("power", VECTOR, "x ** 2"),
            ("negative", VECTOR, "-abs(x)"),
            ("matmul", (_f(3, 4), _f(4, 2)), "x[0] @ x[1]"),
            ("tf.matmul", (_f(3, 4), _f(2, 4)), "tf.matmul(x[0], x[1], transpose_b=True)"),
            ("compare", pair, "tf.cast(x[0] > x[1], tf.float32)"),
            ("slice", STEPS, "x[:, 1:5:2, -1]"),
            ("slice ellipsis", IMAGE, "x[..., 0:2]"),
            ("slice newaxis", VECTOR, "x[:, tf.newaxis, 2:]"),
            ("tf.reshape", VECTOR, "tf.reshape(x, [-1, 2, 4])"),
            ("reshape by shape", STEPS, "tf.reshape(x, [tf.shape(x)[0], -1])"),
            ("tf.concat", pair, "tf.concat([x[0], x[1]], axis=-1)"),
            ("tf.stack", pair, "tf.stack([x[0], x[1]], axis=1)"),
            ("tf.split", VECTOR, "tf.split(x, 2, axis=1)"),
            ("tf.transpose", IMAGE, "tf.transpose(x, [0, 3, 1, 2])"),
            ("tf.expand_dims", VECTOR, "tf.expand_dims(x, 1)"),
            ("tf.squeeze", (_f(4, 1),), "tf.squeeze(x, axis=2)"),
            ("tf.tile", VECTOR, "tf.tile(x, [1, 2])"),
            ("tf.pad", STEPS, "tf.pad(x, [[0, 0], [1, 2], [0, 0]])"),
            ("tf.reduce_mean", STEPS, "tf.reduce_mean(x, axis=1, keepdims=True)"),
            ("tf.reduce_sum", STEPS, "tf.reduce_sum(x, axis=[1, 2])"),
            ("tf.reduce_max", STEPS, "tf.reduce_max(x, axis=-1)"),
            ("tf.argmax", VECTOR, "tf.argmax(x, axis=-1)"),
            ("tf.cast", (_i(5, 3),), "tf.cast(x, tf.float32)"),
            ("tf.clip_by_value", VECTOR, "tf.clip_by_value(x, -0.5, 0.5)"),
            ("tf.where", pair, "tf.where(x[0] > 0.0, x[0], x[1])"),
            ("tf.maximum", pair, "tf.maximum(x[0], x[1])"),
            (
                "tf.math.exp",
                VECTOR,
                "tf.exp(x) + tf.sqrt(abs(x)) + tf.square(x) + tf.math.log(abs(x) + 1.0)",
            ),
            ("tf.nn.relu", VECTOR, "tf.nn.relu(x)"),
            ("tf.nn.softmax", VECTOR, "tf.nn.softmax(x)"),
            ("tf.sigmoid", VECTOR, "tf.sigmoid(x) + tf.tanh(x)"),
            ("tf.one_hot", (_i(5, 3),), "tf.one_hot(x, 5)"),
            ("tf.gather", STEPS, "tf.gather(x, [0, 2], axis=1)"),
            ("tf.einsum", (_f(3, 4), _f(5, 4)), "tf.einsum('abc,adc->abd', x[0], x[1])"),
            ("tf.image.resize", IMAGE, "tf.image.resize(x, (4, 4))"),
            ("tf.nn.l2_normalize", VECTOR, "tf.math.l2_normalize(x, axis=1)"),
            (
                "backend",
                STEPS,
                (
                    "keras.backend.mean(x, axis=1) + keras.backend.sum(keras.backend.square(x),"
                    " axis=1)"
                ),
            ),
            (
                "add_loss",
                VECTOR,
                "L.Dense(2, activity_regularizer=keras.regularizers.l2(0.1))(tf.identity(x))",
            ),
        ],
    }


def _merged():
    rows = {}
    for part in (
        _plain,
        _convolution,
        _pooling,
        _normalization,
        _recurrent,
        _attention,
        _merging,
        _preprocessing,
        _operations,
    ):
        for layer, found in part().items():
            rows.setdefault(layer, []).extend(found)
    return rows


LAYERS = _merged()
RANDOM = (  # what a training step of these layers makes is drawn at random
    "Dropout", "SpatialDropout", "GaussianNoise", "GaussianDropout", "AlphaDropout", "Random", "dropout=",
    "SpectralNormalization",
)  # fmt: skip


def is_random(code):
    """Whether a training step cannot be repeated."""
    return any("L." + word in code or (word.endswith("=") and word in code) for word in RANDOM)
