"""jax2tf: functions of JAX as functions of TensorFlow. The answers are those of JAX itself."""

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf
from artifacts import FLOATS, KEY, Built, Exporter, floats
from jax.experimental import jax2tf

jax.config.update("jax_enable_x64", True)


exporter = Exporter(["jax", "jaxlib"])


def to_numpy(values):
    return jax.tree_util.tree_map(np.asarray, values)


def converted(function, specs, *requests, shapes=None, tolerance=FLOATS, **options):
    """``function(**inputs)`` of JAX as the method `serve` of a module and its signature; ``specs``:
    name -> (shape, dtype).

    ``shapes``: name -> the polymorphic shape, as jax2tf has it; else a first dimension None is the
    batch ``b``.
    """
    names = list(specs)
    if shapes is None:
        shapes = {
            name: "(b, ...)" if shape and shape[0] is None else None
            for name, (shape, _) in specs.items()
        }
    inner = jax2tf.convert(
        lambda *args: function(**dict(zip(names, args))),
        polymorphic_shapes=[shapes[n] for n in names],
        **options,
    )
    module = tf.Module()
    signature = [tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in specs.items()]
    module.serve = tf.function(
        lambda *args: inner(*args), input_signature=signature, autograph=False
    )
    asked = [(KEY, dict(zip(names, request))) for request in requests]
    return Built(
        module,
        asked,
        module.serve,
        {KEY: lambda **inputs: to_numpy(function(**to_numpy(inputs)))},
        tolerance=tolerance,
    )


def batches(*shape):
    return [(floats(size, *shape),) for size in (3, 1)]


@exporter.export
def dense(work):
    w, b = floats(4, 3), floats(3)
    return converted(
        lambda x: {"y": jax.nn.relu(x @ w + b)}, {"x": ([None, 4], "float32")}, *batches(4)
    )


@exporter.export
def fixed_shape(work):
    return converted(
        lambda x: {"y": jnp.fft.irfft(jnp.fft.rfft(x))},
        {"x": ([2, 8], "float32")},
        (floats(2, 8),),
        (floats(2, 8),),
    )


@exporter.export
def two_symbols(work):
    """Two dimensions that are not fixed, one of them the same in both inputs, and one derived from
    the other.
    """
    return converted(
        lambda x, y: {"xy": x @ y, "twice": jnp.concatenate([x, x], axis=1)},
        {"x": ([None, None], "float32"), "y": ([None, 2], "float32")},
        (floats(3, 5), floats(5, 2)),
        (floats(1, 2), floats(2, 2)),
        shapes={"x": "(b, n)", "y": "(n, 2)"},
    )


@exporter.export
def parameters(work):
    """A pytree of parameters, which are variables of the module, and a second one for the updated
    state.
    """
    tree = {"layers": [{"w": floats(4, 6), "b": floats(6)}, {"w": floats(6, 2), "b": floats(2)}]}

    def predict(params, x):
        for layer in params["layers"]:
            x = jnp.tanh(x @ layer["w"] + layer["b"])
        return x

    module = tf.Module()
    module.params = tf.nest.map_structure(tf.Variable, tree)
    inner = jax2tf.convert(predict, polymorphic_shapes=[None, "(b, ...)"])
    spec = tf.TensorSpec([None, 4], tf.float32, "x")
    # A tracked dictionary is not a pytree: JAX receives a plain one with the same leaves.
    variables = {"layers": [dict(layer) for layer in module.params["layers"]]}
    module.predict = tf.function(
        lambda x: {"y": inner(variables, x)}, input_signature=[spec], autograph=False
    )
    answers = {KEY: lambda x: {"y": np.asarray(predict(tree, x.numpy()))}}
    requests = [(KEY, {"x": x}) for (x,) in batches(4)]
    return Built(module, requests, module.predict, answers, tolerance=FLOATS)


@exporter.export
def gradients(work):
    """The gradient is computed by JAX, in the signature."""
    w = floats(4)

    def loss(x):
        return jnp.sum(jnp.sin(x @ w) ** 2)

    return converted(
        lambda x: {"loss": loss(x), "dx": jax.grad(loss)(x)},
        {"x": ([None, 4], "float32")},
        *batches(4),
    )


@exporter.export
def with_gradient(work):
    """The gradient is TensorFlow's, through the custom gradient that jax2tf registers; the function
    keeps it in the export.
    """

    def cube(x):
        return jnp.sum(x**3, axis=-1)

    inner = jax2tf.convert(cube, polymorphic_shapes=["(b, ...)"], with_gradient=True)
    module = tf.Module()
    spec = tf.TensorSpec([None, 3], tf.float32, "x")
    module.cube = tf.function(inner, input_signature=[spec], autograph=False)

    @tf.function(input_signature=[spec], autograph=False)
    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = module.cube(x)
        return {"y": y, "slope": tape.gradient(y, x)}

    module.slope = slope
    answers = {"slope": lambda x: {"y": np.asarray(cube(x.numpy())), "slope": 3 * x.numpy() ** 2}}
    return Built(
        module,
        [("slope", {"x": x}) for (x,) in batches(3)],
        {"slope": slope},
        answers,
        tolerance=FLOATS,
    )


@exporter.export
def scan(work):
    w = floats(3, 3)

    def run(x):
        def step(state, part):
            state = jnp.tanh(state @ w + part)
            return state, jnp.sum(state)

        last, sums = jax.lax.scan(step, jnp.zeros(3, x.dtype), x)
        return {"last": last, "sums": sums}

    return converted(run, {"x": ([5, 3], "float32")}, (floats(5, 3),), (floats(5, 3),))


@exporter.export
def cond_and_while(work):
    """The steps of Collatz for each number, and one branch of two; integers, so that the answer is
    exact.
    """

    def steps(n):
        def body(state):
            n, count = state
            return jax.lax.cond(n % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, n), count + 1

        return jax.lax.while_loop(lambda state: state[0] > 1, body, (n, jnp.int64(0)))[1]

    given = [(np.int64([1, 27, 97]),), (np.int64([6, 7, 8]),)]
    return converted(
        lambda n: {"steps": jax.vmap(steps)(n)},
        {"n": ([3], "int64")},
        *given,
        tolerance=(0.0, 0.0, "bit-exact"),
    )


@exporter.export
def dtypes(work):
    """Sums of many types with themselves; every one of these is exact."""
    kinds = [
        "bool",
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
    ]
    kinds.append("complex64")
    specs = {f"x_{kind}": ([None], kind) for kind in kinds}

    def both(**inputs):
        return {
            f"y_{name[2:]}": x ^ True if x.dtype == bool else x + x for name, x in inputs.items()
        }

    three = [np.array([-1, 0, 100]).astype(kind) for kind in kinds]
    one = [np.array([100]).astype(kind) for kind in kinds]
    return converted(both, specs, three, one, tolerance=(0.0, 0.0, "bit-exact"))


@exporter.export
def bfloat16(work):
    given = [({"$cast": ["bfloat16", floats(size, 2)]},) for size in (3, 1)]
    return converted(
        lambda x: {"y": x * jnp.bfloat16(3), "wide": x.astype(jnp.float32)},
        {"x": ([None, 2], "bfloat16")},
        *given,
        tolerance=(
            1e-2,
            0.0,
            "A bfloat16 has 8 bits; compiled code may round once where single steps round twice.",
        ),
    )


@exporter.export
def pytrees(work):
    """Nests in and out of the function; the signature has flat names for them."""

    def mix(tree):
        return {
            "sum": tree["pair"][0] + tree["pair"][1]["z"],
            "parts": (tree["x"], [tree["x"] * 2]),
        }

    inner = jax2tf.convert(mix, polymorphic_shapes=["(b, ...)"])
    module = tf.Module()
    spec = {
        "x": tf.TensorSpec([None, 2], tf.float32),
        "pair": (tf.TensorSpec([None], tf.int32), {"z": tf.TensorSpec([None], tf.int32)}),
    }
    module.mix = tf.function(inner, input_signature=[spec], autograph=False)
    trees = [
        {
            "x": floats(size, 2),
            "pair": (np.arange(size, dtype=np.int32), {"z": np.full(size, 5, np.int32)}),
        }
        for size in (3, 1)
    ]
    return Built(module, [("mix", (tree,), {}) for tree in trees])


@exporter.export
def random_by_key(work):
    """JAX's random numbers are a function of the key: bit-exact everywhere."""
    return converted(
        lambda key: {"bits": jax.random.bits(key, (4,)), "order": jax.random.permutation(key, 5)},
        {"key": ([2], "uint32")},
        (np.uint32([0, 42]),),
        (np.uint32([7, 2**32 - 1]),),
        tolerance=(0.0, 0.0, "bit-exact"),
    )


@exporter.export
def attention(work):
    w = {name: floats(8, 8) for name in "qkv"}

    def attend(x, length):
        q, k, v = ((x @ w[name]).reshape(*x.shape[:2], 2, 4) for name in "qkv")
        mask = jnp.arange(x.shape[1])[None, :] < length[:, None]
        scores = jnp.where(mask[:, None, None, :], jnp.einsum("bqhd,bkhd->bhqk", q, k) / 2.0, -1e9)
        return {"y": jnp.einsum("bhqk,bkhd->bqhd", jax.nn.softmax(scores), v).reshape(x.shape)}

    return converted(
        attend,
        {"x": ([None, None, 8], "float32"), "length": ([None], "int32")},
        (floats(2, 5, 8), np.int32([5, 2])),
        (floats(1, 1, 8), np.int32([1])),
        shapes={"x": "(b, t, 8)", "length": "(b,)"},
    )


@exporter.export
def convolution(work):
    kernel = floats(3, 3, 2, 4)

    def convolve(x):
        y = jax.lax.conv_general_dilated(
            x, kernel, (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return {
            "y": jax.lax.reduce_window(
                y, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"
            )
        }

    return converted(convolve, {"x": ([None, 8, 8, 2], "float32")}, *batches(8, 8, 2))


@exporter.export
def linear_algebra(work):
    """Cholesky and QR call LAPACK on a CPU: a custom call in the export."""
    return converted(
        lambda x: {
            "l": jnp.linalg.cholesky(x @ x.T + 4 * jnp.eye(3)),
            "r": jnp.abs(jnp.linalg.qr(x)[1]),
        },
        {"x": ([3, 3], "float64")},
        (floats(3, 3, dtype=np.float64),),
        (np.eye(3),),
        tolerance=(1e-9, 1e-9, "Another LAPACK may do the steps in another order."),
    )


if __name__ == "__main__":
    exporter.main()
