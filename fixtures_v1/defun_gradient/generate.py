"""A library of legacy Defun functions: one with a gradient function, one differentiated by SymbolicGradient, one nested."""

CLAUSES = ("FMT-14", "V1-14")
FEATURES = ("function_library", "defun", "gradient")
RUNTIME = "tf1.15"


def generate(tf, rec):
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32, func_name="PowerGradient")
    def square_gradient(x, grad):
        return 10.0 * grad  # on purpose not 2x: who ignores the library's gradient is found out

    @function.Defun(tf.float32, func_name="Power", grad_func=square_gradient)
    def square(x):
        return x * x

    @function.Defun(tf.float32, tf.float32, func_name="Blend")
    def blend(x, y):
        return square(x) + 3.0 * y

    @function.Defun(tf.float32, func_name="Cube")
    def cube(x):
        return x * x * x

    x = tf.placeholder(tf.float32, [None], "x")
    a = tf.get_variable("a", initializer=2.0)
    y, z = blend(x, x * a), cube(x)
    custom = tf.gradients(square(x), x, name="custom")[0]
    symbolic = tf.gradients(z, x, name="symbolic")[0]
    sess = rec.initialized_session()
    rec.export(
        sess,
        {"serving_default": rec.signature({"x": x}, {"y": y, "z": z, "custom_gradient": custom, "symbolic_gradient": symbolic})},
    )
    rec.ask("serving_default", {"x": [1.0]})
    rec.ask("serving_default", {"x": [3.0, -0.5]})
