"""The reference implementation uses nothing of TensorFlow's code for SavedModels: it could not be
an oracle for it otherwise.

Importing TensorFlow imports that code, so its absence from `sys.modules` is no proof. The sources
are read, and the code is replaced by stubs that raise while ours runs.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import reference_impl

PACKAGE = Path(reference_impl.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
FORBIDDEN = (
    "tensorflow.python.saved_model",
    "tensorflow.saved_model",
    "tensorflow.compat.v1.saved_model",
    "compat_matrix",
)


def uses(tree: ast.AST) -> set[str]:
    """Every module that a source imports, names in a string, or reaches as an attribute of `tf`."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            found.add(ast.unparse(node).replace("tf.", "tensorflow.", 1))
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.startswith("tensorflow.")
        ):
            found.add(node.value.replace(":", "."))
    return found


def private_names(tree: ast.AST) -> set[str]:
    """Names with one leading underscore that a source takes from objects, as an attribute or by
    getattr and the like.
    """
    found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in (
            "getattr",
            "hasattr",
            "setattr",
            "delattr",
        ):
            found.update(arg.value for arg in node.args[1:2] if isinstance(arg, ast.Constant))
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def own_names(tree: ast.AST) -> set[str]:
    """Names that a source defines: functions, classes, attributes that it sets."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
    return found


def internal_names(tree: ast.AST) -> set[str]:
    """Uses of `tf.__internal__`, as an attribute or by a string."""
    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named |= {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    return {name for name in named if "__internal__" in name and " " not in name}


PUBLIC = {"_fields", "_make", "_replace", "_asdict"}  # of named tuples


def test_private_attributes_of_tensorflow_are_used_in_one_package():
    trees = {
        module: ast.parse((PACKAGE / module).read_text(encoding="utf-8")) for module in MODULES
    }
    elsewhere = {
        module: tree for module, tree in trees.items() if not module.startswith("tensorflow_api/")
    }
    own = {module: own_names(tree) for module, tree in elsewhere.items()}
    theirs = set().union(
        *(
            private_names(tree)
            for module, tree in trees.items()
            if module.startswith("tensorflow_api/")
        )
    )
    ours = PUBLIC | (
        set().union(*own.values()) - theirs
    )  # a private name of TensorFlow is ours only in the module that defines it
    found = {
        module: (private_names(tree) - ours - own[module]) | internal_names(tree)
        for module, tree in elsewhere.items()
    }
    assert {module: names for module, names in found.items() if names} == {}
    assert "_call_flat" in private_names(trees["tensorflow_api/functions.py"]) - ours
    assert internal_names(trees["tensorflow_api/trackables.py"])


def definition(cls: type) -> ast.AST:
    """The source of a class, empty for one that is written in C++."""
    file = getattr(sys.modules.get(str(cls.__module__)), "__file__", None) or ""
    tree = parsed(file) if file.endswith(".py") else ast.parse("")
    return next(
        (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == cls.__name__),
        ast.parse(""),
    )


@functools.cache
def parsed(file: str) -> ast.AST:
    return ast.parse(Path(file).read_text(encoding="utf-8"))


def overridden(cls: type) -> set[str]:
    """Private attributes of TensorFlow's classes that a class of ours, or its own source on `self`,
    defines anew.
    """
    theirs = [
        base
        for base in cls.__mro__
        if str(base.__module__).startswith(("tensorflow", "keras", "tf_keras"))
    ]
    if not theirs:
        return set()
    ours = [
        base
        for base in cls.__mro__
        if base is cls or str(base.__module__).startswith("reference_impl.")
    ]
    ours = [
        base
        for base in ours
        if base is cls or not base.__module__.startswith("reference_impl.tensorflow_api.")
    ]
    own = {name for base in ours for name in vars(base)}
    stored = [
        node
        for base in ours
        for node in ast.walk(definition(base))
        if isinstance(node, ast.Attribute)
    ]
    own |= {node.attr for node in stored if isinstance(node.ctx, ast.Store)}
    private = {name for name in own if name.startswith("_") and not name.startswith("__")} - {
        "_abc_impl"
    }
    known = {name for base in theirs for name in vars(base)}
    known |= {name for base in theirs for name in own_names(definition(base))}
    return private & known


@pytest.mark.tensorflow
def test_private_methods_of_tensorflow_are_overridden_in_one_package():
    found = {}
    for module in MODULES:
        name = f"reference_impl.{module[:-3].replace('/', '.')}".removesuffix(".__init__")
        for cls in vars(importlib.import_module(name)).values():
            if inspect.isclass(cls) and cls.__module__ == name:
                found.update(
                    {f"{name}.{cls.__name__}": names for names in [overridden(cls)] if names}
                )
    assert [name for name in found if not name.startswith("reference_impl.tensorflow_api.")] == []
    assert "_arg_keywords" in set().union(*found.values())


def test_the_check_of_sources_finds_what_it_looks_for():
    source = (
        "import tensorflow as tf\ntf.compat.v1.saved_model.load\nx ="
        " 'tensorflow.python.saved_model.load:load'\n"
    )
    assert sum(use.startswith(FORBIDDEN) for use in uses(ast.parse(source))) == 3
    assert MODULES


@pytest.mark.parametrize("module", MODULES)
def test_no_source_uses_the_code_under_test(module):
    found = uses(ast.parse((PACKAGE / module).read_text(encoding="utf-8")))
    assert not [use for use in found if use.startswith(FORBIDDEN)]
    private = [use for use in found if use.startswith("tensorflow.python")]
    assert not private or module.startswith("tensorflow_api/")


def test_importing_the_package_imports_no_tensorflow():
    code = (
        "import sys, reference_impl as r; r.inspect; print([m for m in sys.modules if"
        " m.startswith(('tensorflow', 'keras'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=PACKAGE.parent, check=True
    )
    assert done.stdout.strip() == "[]"


TRIPPED = (
    "load", "load_v1_in_v2", "loader_impl", "save", "builder_impl", "function_deserialization",
    "function_serialization", "signature_serialization", "nested_structure_coder", "revived_types",
    "path_helpers", "signature_def_utils_impl", "utils_impl", "fingerprinting_utils",
)  # fmt: skip


class Tripped(Exception):
    """The code under test was used."""


@pytest.fixture
def tripwire(monkeypatch):
    """Every function and class of TensorFlow's SavedModel modules raises when it is called."""

    def stub(name):
        def raising(*_, **__):
            raise Tripped(name)

        return raising

    count = 0
    for name in TRIPPED:
        if importlib.util.find_spec(f"tensorflow.python.saved_model.{name}") is None:
            assert name == "fingerprinting_utils"  # came after 2.12
            continue
        module = importlib.import_module(f"tensorflow.python.saved_model.{name}")
        for key, value in list(vars(module).items()):
            if (
                inspect.isfunction(value) or inspect.isclass(value)
            ) and value.__module__ == module.__name__:
                monkeypatch.setattr(module, key, stub(f"{name}.{key}"))
                count += 1
    assert count > 100


def model(tf):
    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.v = tf.Variable([2.0, 3.0])
            self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
            self.static = tf.lookup.StaticHashTable(
                tf.lookup.KeyValueTensorInitializer(["a"], [1]), -1
            )

        @tf.function(input_signature=[tf.TensorSpec([2], tf.float32, name="x")])
        def f(self, x):
            return tf.while_loop(lambda i, _: i < 2, lambda i, y: (i + 1, y * self.v), (0, x))[1]

        @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
        def g(self, words):
            return self.table.lookup(words), tf.cast(self.static.lookup(words), tf.int64)

    made = Model()
    made.table.insert(["b"], [7])
    return made


def use(tf, loaded):
    assert [part.numpy().tolist() for part in loaded.g(["a", "b"])] == [[-1, 7], [1, -1]]
    assert loaded.signatures["serving_default"](x=[1.0, 1.0])["output_0"].numpy().tolist() == [
        4.0,
        9.0,
    ]
    with tf.GradientTape() as tape:
        y = loaded.f([1.0, 2.0])
    np.testing.assert_array_equal(tape.gradient(y, loaded.v).numpy(), [4.0, 12.0])


@pytest.mark.tensorflow
def test_load_call_and_gradient_without_the_code_under_test(tmp_path, request):
    import tensorflow as tf

    original = model(tf)
    tf.saved_model.save(original, str(tmp_path / "model"), signatures=original.f)
    request.getfixturevalue("tripwire")
    with pytest.raises(Tripped):
        importlib.import_module("tensorflow.python.saved_model.load").load(str(tmp_path / "model"))
    use(tf, reference_impl.load(tmp_path / "model"))


@pytest.mark.tensorflow
def test_save_and_save_again_without_the_code_under_test(tmp_path, tripwire):
    import tensorflow as tf

    original = model(tf)
    reference_impl.save(original, tmp_path / "first", signatures=original.f)
    reference_impl.save(reference_impl.load(tmp_path / "first"), tmp_path / "second")
    for name in ("first", "second"):
        use(tf, reference_impl.load(tmp_path / name))


def dataset_model(tf):
    """A function that captures a dataset, and one that makes one."""
    made = tf.Module()
    made.dataset = tf.data.Dataset.range(4).map(lambda x: x * 2)
    signature = [tf.TensorSpec([], tf.int64)]
    made.f = tf.function(
        lambda x: made.dataset.reduce(x, lambda a, b: a + b), input_signature=signature
    )
    made.g = tf.function(
        lambda x: tf.data.Dataset.range(x).reduce(x, lambda a, b: a + b), input_signature=signature
    )
    return (
        made,
        lambda loaded: [
            int(loaded.f(tf.constant(1, tf.int64))),
            int(loaded.g(tf.constant(3, tf.int64))),
        ],
        [13, 6],
    )


def extension_type_model(tf):
    class Masked(tf.experimental.ExtensionType):
        __name__ = "test_reference_independence.Masked"
        __annotations__ = {
            "values": tf.Tensor,
            "mask": tf.Tensor,
        }  # not as text, which TensorFlow does not take

    made = tf.Module()
    spec = Masked.Spec(tf.TensorSpec([2]), tf.TensorSpec([2], tf.bool))
    made.f = tf.function(
        lambda x: tf.reduce_sum(tf.where(x.mask, x.values, 0.0)), input_signature=[spec]
    )
    return made, lambda loaded: float(loaded.f(Masked([1.0, 2.0], [True, False]))), 1.0


def custom_gradient_model(tf):
    @tf.custom_gradient
    def scaled(x):
        return x * 2.0, lambda upstream: upstream * 10.0

    made = tf.Module()
    made.v = tf.Variable(3.0)
    made.f = tf.function(lambda: scaled(made.v), input_signature=[])

    def gradient(loaded):
        with tf.GradientTape() as tape:
            y = loaded.f()
        return float(tape.gradient(y, loaded.v))

    return made, gradient, 10.0


@pytest.mark.tensorflow
@pytest.mark.parametrize("make", [dataset_model, extension_type_model, custom_gradient_model])
def test_other_models_without_the_code_under_test(tmp_path, tripwire, make):
    import tensorflow as tf

    made, ask, answer = make(tf)
    reference_impl.save(made, tmp_path / "first", signatures={})
    reference_impl.save(reference_impl.load(tmp_path / "first"), tmp_path / "second")
    assert [ask(reference_impl.load(tmp_path / name)) for name in ("first", "second")] == [
        answer,
        answer,
    ]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["keras", "tf_keras"])
def test_models_of_keras_without_the_code_under_test(tmp_path, tripwire, name):
    import tensorflow as tf

    keras = pytest.importorskip(name)
    made = keras.Sequential([keras.layers.Dense(2, use_bias=False, kernel_initializer="ones")])
    made.build([None, 3])
    reference_impl.save(made, tmp_path / "first")
    reference_impl.save(reference_impl.load(tmp_path / "first"), tmp_path / "second")
    for folder in ("first", "second"):
        (answer,) = (
            reference_impl.load(tmp_path / folder)
            .signatures["serving_default"](tf.ones([1, 3]))
            .values()
        )
        np.testing.assert_array_equal(answer, [[3.0, 3.0]])


@pytest.mark.tensorflow
def test_a_tf1_model_without_the_code_under_test(tripwire):
    fixtures = PACKAGE.parent / "fixtures_v1"
    loaded = reference_impl.load(fixtures / "half_plus_two" / "model")
    assert loaded.signatures and loaded.variables
