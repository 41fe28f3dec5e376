"""The life of a model, twice: once in the hands of `tf.saved_model`, once in those of the reference
implementation.

Both copies go through the same steps and must agree with a third, of plain Python numbers.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import reference_impl
from property_tests import implementations
from property_tests.implementations import BOTH, REFERENCE, TENSORFLOW
from property_tests.profiles import budget

pytestmark = pytest.mark.tensorflow

NUMBERS = st.integers(-4, 4).map(float)
PICK = st.integers(0, 99)
DEEPEST = 3  # larger models around a model


def affine(number, variable):
    return lambda x: x * number + variable


def scaled(function, number):
    return lambda x: function(x) * number


class Life(RuleBasedStateMachine):
    """`values`: path of a variable -> its value; `functions`: path -> how it answers, given the
    values.
    """

    def __init__(self):
        super().__init__()
        import tensorflow as tf

        self.tf = tf
        self.home = tempfile.TemporaryDirectory(prefix="life-")
        self.folder = Path(self.home.name)
        self.models = {name: tf.Module() for name in BOTH}
        self.values, self.functions, self.signatures = {}, {}, {}
        self.count = self.depth = 0
        self.saved = None

    def teardown(self):
        self.home.cleanup()

    def new(self, kind):
        self.count += 1
        return f"{kind}{self.count}"

    def find(self, name, path):
        """The object at a path of one of the two copies."""
        found = self.models[name]
        for part in path.split("."):
            found = getattr(found, part)
        return found

    def path(self, of, pick):
        return sorted(of)[pick % len(of)]

    def expected(self, path, x, functions=None, values=None):
        """What a function answers to a number."""
        functions, values = functions or self.functions, values or self.values
        kind, other, number = functions[path]
        return (
            x * number + values[other]
            if kind == "affine"
            else self.expected(other, x, functions, values) * number
        )

    def variable_of(self, path):
        kind, other, number = self.functions[path]
        if kind == "affine":
            return other, 1.0
        variable, factor = self.variable_of(other)
        return variable, factor * number

    @initialize(value=NUMBERS)
    def begin(self, value):
        self.add_variable(value)

    @rule(value=NUMBERS)
    def add_variable(self, value):
        path = self.new("v")
        for model in self.models.values():
            setattr(model, path, self.tf.Variable(value, name=path))
        self.values[path] = value

    @rule(pick=PICK, number=NUMBERS, signature=st.booleans())
    def add_function(self, pick, number, signature):
        """A function of a variable, wherever that is; some are signatures of the next exports."""
        path, variable = self.new("f"), self.path(self.values, pick)
        for name, model in self.models.items():
            held = self.find(name, variable)
            self._add(model, path, affine(number, held))
        self.functions[path] = ("affine", variable, number)
        if signature:
            self.signatures[f"key_{path}"] = path

    @precondition(lambda self: self.functions)
    @rule(pick=PICK, number=NUMBERS)
    def add_a_function_that_calls_another(self, pick, number):
        path, other = self.new("f"), self.path(self.functions, pick)
        for name, model in self.models.items():
            called = self.find(name, other)
            self._add(model, path, scaled(called, number))
        self.functions[path] = ("calls", other, number)

    def _add(self, model, path, body):
        spec = self.tf.TensorSpec([None], self.tf.float32, "x")
        setattr(model, path, self.tf.function(body, input_signature=[spec], autograph=False))

    @precondition(lambda self: self.functions)
    @rule(pick=PICK, x=st.lists(NUMBERS, max_size=3))
    def call(self, pick, x):
        path = self.path(self.functions, pick)
        wanted = [self.expected(path, item) for item in x]
        for name in BOTH:
            assert (
                self.find(name, path)(self.tf.constant(x, self.tf.float32)).numpy().tolist()
                == wanted
            ), name

    @rule(pick=PICK, value=NUMBERS)
    def mutate(self, pick, value):
        path = self.path(self.values, pick)
        for name in BOTH:
            self.find(name, path).assign(value)
        self.values[path] = value

    @precondition(lambda self: self.functions)
    @rule(pick=PICK, size=st.integers(0, 3))
    def fine_tune(self, pick, size):
        """One step downhill through a function, loaded or not."""
        path = self.path(self.functions, pick)
        variable, factor = self.variable_of(path)
        for name in BOTH:
            held = self.find(name, variable)
            with self.tf.GradientTape() as tape:
                loss = self.tf.reduce_sum(self.find(name, path)(self.tf.ones([size])))
            held.assign_sub(0.5 * tape.gradient(loss, held))
        self.values[variable] -= 0.5 * factor * size

    @precondition(lambda self: self.depth < DEEPEST)
    @rule()
    def attach_to_a_larger_model(self):
        for name, model in self.models.items():
            self.models[name] = self.tf.Module()
            self.models[name].inner = model
        self.depth += 1
        self.values = {f"inner.{path}": value for path, value in self.values.items()}
        self.functions = {
            f"inner.{path}": self._deeper(item) for path, item in self.functions.items()
        }
        self.signatures = {key: f"inner.{path}" for key, path in self.signatures.items()}

    def _deeper(self, function):
        kind, other, number = function
        return kind, f"inner.{other}", number

    @precondition(lambda self: self.functions)
    @rule(pick=PICK)
    def delete_a_function(self, pick):
        path = self.path(self.functions, pick)
        if any(other == path for kind, other, _ in self.functions.values() if kind == "calls"):
            return
        owner, _, last = path.rpartition(".")
        for name in BOTH:
            holder = self.find(name, owner) if owner else self.models[name]
            delattr(holder, last)
        del self.functions[path]
        self.signatures = {key: held for key, held in self.signatures.items() if held != path}

    @rule(crossed=st.booleans())
    def save_and_load(self, crossed):
        """Each saves its own; then each loads its own again, or what the other wrote."""
        made = {}
        for name, model in self.models.items():
            keys = {key: self.find(name, path) for key, path in self.signatures.items()}
            made[name] = implementations.save(name, model, self.folder / self.new(name), keys)
        views = [self.seen(path) for path in made.values()]
        assert views[0] == views[1]
        if crossed:
            made = dict(zip(made, reversed(list(made.values()))))
        self.models = {name: implementations.load(name, path) for name, path in made.items()}
        self.saved = (
            list(made.values()),
            dict(self.values),
            dict(self.functions),
            dict(self.signatures),
        )

    def seen(self, path):
        """What `inspect` says of an export."""
        (graph,) = reference_impl.inspect(path).meta_graphs
        functions = {(item.path, len(item.traces)) for item in graph.functions if item.polymorphic}
        variables = {
            (item.path, item.name, item.dtype, item.shape, item.trainable)
            for item in graph.variables
        }
        signatures = {
            (item.key, tuple([slot.name for slot in item.inputs])) for item in graph.signatures
        }
        return functions, variables, signatures

    @precondition(lambda self: self.saved and self.saved[2])
    @rule(pick=PICK, writer=st.integers(0, 1), x=NUMBERS)
    def load_a_part(self, pick, writer, x):
        """One function of an export, and nothing else of it."""
        paths, values, functions, _ = self.saved
        path = sorted(functions)[pick % len(functions)]
        part = reference_impl.load(paths[writer], options=reference_impl.LoadOptions(only=[path]))
        for step in path.split("."):
            part = getattr(part, step)
        assert part(self.tf.constant([x])).numpy().tolist() == [
            self.expected(path, x, functions, values)
        ]

    @precondition(lambda self: self.saved and self.saved[3])
    @rule(pick=PICK, x=NUMBERS)
    def ask_a_signature(self, pick, x):
        """Of the export, as it was saved."""
        paths, values, functions, signatures = self.saved
        key = sorted(signatures)[pick % len(signatures)]
        wanted = [self.expected(signatures[key], x, functions, values)]
        for path in paths:
            for name in BOTH:
                (answer,) = (
                    implementations.load(name, path)
                    .signatures[key](x=self.tf.constant([x]))
                    .values()
                )
                assert answer.numpy().tolist() == wanted

    @rule(forward=st.booleans())
    def carry_a_training_checkpoint_over(self, forward):
        """Values go from one copy to the other, whose own were lost."""
        giver, taker = (TENSORFLOW, REFERENCE) if forward else (REFERENCE, TENSORFLOW)
        prefix = self.tf.train.Checkpoint(self.models[giver]).write(
            str(self.folder / self.new("checkpoint"))
        )
        for path in self.values:
            self.find(taker, path).assign(99.0)
        self.tf.train.Checkpoint(self.models[taker]).read(prefix).assert_existing_objects_matched()

    @invariant()
    def both_have_the_values(self):
        for name in BOTH:
            assert {
                path: float(self.find(name, path).numpy()) for path in self.values
            } == self.values, name


TestTheLifeOfAModel = Life.TestCase
TestTheLifeOfAModel.settings = budget(12, stateful_step_count=14)
