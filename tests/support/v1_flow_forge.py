"""Random TF 1.x graphs of loops, branches, TensorArrays and assignments, with the answers and
gradients of a Session.
"""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import numpy as np


class Recorded(NamedTuple):
    """What a Session said: the outputs of its first run, and gradients of the sum of y by name of a
    variable or input.
    """

    outputs: dict[str, Any]
    gradients: dict[str, Any]


class Forge:
    """Writes one graph.

    Values are three floats that tanh keeps small; the counter only grows by whole numbers.
    """

    def __init__(self, tf: Any, seed: int):
        self.tf, self.v1 = tf, tf.compat.v1
        self.random = random.Random(seed)
        self.budget = 9  # constructs with parts

    def write(self) -> tuple[Any, Any, Any, list[Any]]:
        v1 = self.v1
        self.x = v1.placeholder(self.tf.float32, [3], name="x")
        self.weights = [
            v1.get_variable(f"w{i}", initializer=np.array([0.3, -0.4, 0.5], np.float32) * (i + 1))
            for i in range(2)
        ]
        self.counter = v1.get_variable("counter", initializer=0.0, trainable=False)
        y = self.expression([self.x, self.x * 0.5], 3)
        with self.tf.control_dependencies([y]):
            count = self.tf.identity(self.counter.read_value())
        return self.x, y, count, self.weights

    def expression(self, values: list[Any], depth: int) -> Any:
        makers = [self.arithmetic, self.arithmetic, self.weight]
        if depth > 0 and self.budget > 0:
            makers = [
                self.arithmetic,
                self.weight,
                self.cond,
                self.case,
                self.loop,
                self.array,
                self.update,
                self.growing,
                self.fold,
            ]
        maker = self.random.choice(makers)
        if maker not in (self.arithmetic, self.weight):
            self.budget -= 1
        result = maker(values, depth - 1)
        return (
            self.expression([*values, result], depth - 1)
            if depth > 0 and self.random.random() < 0.7
            else result
        )

    def pick(self, values: list[Any]) -> Any:
        return self.random.choice(values)

    def arithmetic(self, values: list[Any], depth: int) -> Any:
        one, other = self.pick(values), self.pick(values)
        tf = self.tf
        makers = [lambda: tf.tanh(one + other), lambda: one * other, lambda: tf.sin(one) - other * 0.25,
                  lambda: tf.concat([one[1:], other[:1]], 0), lambda: tf.where(one > other, one, other * 0.5)]  # fmt: skip
        return self.random.choice(makers)()

    def weight(self, values: list[Any], depth: int) -> Any:
        weight = self.random.choice(self.weights)
        return self.tf.tanh(
            self.pick(values) * (weight if self.random.random() < 0.5 else weight.read_value())
        )

    def predicate(self, values: list[Any]) -> Any:
        if self.random.random() < 0.2:
            return self.tf.constant(self.random.random() < 0.5)
        return self.tf.reduce_sum(self.pick(values)) > self.random.uniform(-0.5, 0.5)

    def cond(self, values: list[Any], depth: int) -> Any:
        branches = [lambda: self.expression(values, depth), lambda: self.pick(values) if self.random.random() < 0.3
                    else self.expression(values, depth)]  # fmt: skip
        self.random.shuffle(branches)
        if self.random.random() < 0.3:
            made = self.v1.cond(
                self.predicate(values),
                lambda: (branches[0](), self.x * 2.0),
                lambda: (branches[1](), self.x),
            )
            return self.tf.tanh(made[0] + made[1])
        return self.v1.cond(self.predicate(values), *branches)

    def case(self, values: list[Any], depth: int) -> Any:
        pairs = [
            (self.predicate(values), lambda: self.expression(values, min(depth, 1)))
            for _ in range(2)
        ]
        return self.v1.case(pairs, default=lambda: self.pick(values) * 0.5)

    def loop(self, values: list[Any], depth: int) -> Any:
        tf, start = self.tf, self.pick(values)
        limit = self.random.randint(0, 4)
        other = self.random.random() < 0.5
        options = {
            "parallel_iterations": self.random.choice([1, 10]),
            "swap_memory": self.random.random() < 0.3,
        }
        if self.random.random() < 0.3:
            options["maximum_iterations"] = self.random.randint(1, 3)

        def test(i: Any, a: Any, b: Any) -> Any:
            within = i < limit
            return within if other else tf.logical_and(within, tf.reduce_sum(a) < 2.5)

        def body(i: Any, a: Any, b: Any) -> Any:
            new = self.expression([*values, a, b], depth)
            if other:
                with tf.control_dependencies([self.v1.assign_add(self.counter, 1.0)]):
                    return [i + 1, tf.tanh(new), tf.identity(a)]
            return [i + 1, tf.tanh(new), b]

        made = self.v1.while_loop(test, body, [0, start, self.pick(values)], **options)
        return made[1] if self.random.random() < 0.5 else made[1] + made[2] * 0.5

    def array(self, values: list[Any], depth: int) -> Any:
        tf, size = self.tf, self.random.randint(1, 4)
        dynamic = self.random.random() < 0.3
        array = tf.TensorArray(tf.float32, size=0 if dynamic else size, dynamic_size=dynamic, clear_after_read=False,
                               **({"element_shape": [3]} if self.random.random() < 0.5 else {}))  # fmt: skip
        source = tf.TensorArray(tf.float32, size=size).unstack(
            tf.stack([self.pick(values) for _ in range(size)])
        )

        def body(i: Any, a: Any, out: Any) -> Any:
            new = tf.tanh(self.expression([*values, a], min(depth, 1)) + source.read(i))
            return [i + 1, new, out.write(i, new)]

        _, last, filled = self.v1.while_loop(
            lambda i, *_: i < size, body, [0, self.pick(values), array]
        )
        if self.random.random() < 0.3:
            return last + tf.reshape(filled.concat(), [size, 3])[0]
        return (
            tf.reduce_sum(filled.stack(), 0)
            + filled.read(size - 1) * 0.1
            + tf.cast(filled.size(), tf.float32)
        )

    def growing(self, values: list[Any], depth: int) -> Any:
        tf = self.tf
        shapes = [tf.TensorShape([]), tf.TensorShape([None, 3])]
        start = self.pick(values)[None]
        _, rows = self.v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.concat([a, tf.tanh(a[:1] * start)], 0)),
                                     [0, start], shape_invariants=shapes)  # fmt: skip
        return tf.reduce_mean(rows, 0)

    def fold(self, values: list[Any], depth: int) -> Any:
        tf, rows = self.tf, self.tf.stack([self.pick(values) for _ in range(3)])
        step = self.weight
        maker = self.random.choice(["map_fn", "foldl", "foldr", "scan"])
        if maker == "map_fn":
            return tf.reduce_sum(self.v1.map_fn(lambda row: step([row], 0), rows), 0)
        folded = getattr(self.v1, maker)(lambda a, row: tf.tanh(step([a], 0) + row), rows)
        return folded[-1] if maker == "scan" else folded

    def update(self, values: list[Any], depth: int) -> Any:
        """A branch that counts, and an assertion that holds."""
        tf, one = self.tf, self.pick(values)
        counted = self.v1.cond(
            self.predicate(values),
            lambda: self.v1.assign_add(self.counter, 2.0),
            lambda: tf.constant(0.0),
        )
        with tf.control_dependencies(
            [counted, self.v1.Assert(tf.reduce_all(tf.equal(one, one)), [one])]
        ):
            return tf.identity(one)


class Effects:
    """A program of effects of which each waits for the one before: what it leaves in `state` tells
    the order they had.

    A token is a tensor that is there when all effects so far have happened.
    """

    def __init__(self, tf: Any, seed: int):
        self.tf, self.v1 = tf, tf.compat.v1
        self.random = random.Random(-1 - seed)
        self.budget = 8

    def write(self, start: Any) -> tuple[Any, Any]:
        v1 = self.v1
        self.state = v1.get_variable("state", initializer=1.0, trainable=False)
        self.rows = v1.get_variable("rows", initializer=np.zeros(3, np.float32), trainable=False)
        self.queue = v1.FIFOQueue(20, [self.tf.float32], shapes=[[]])
        done = self.step(start, 4)
        with self.tf.control_dependencies([done]):
            return self.tf.identity(self.state.read_value()), self.tf.identity(
                self.rows.read_value()
            )

    def step(self, token: Any, depth: int) -> Any:
        makers = [self.assign, self.assign, self.scatter, self.pass_on, self.look]
        if depth > 0 and self.budget > 0:
            makers = [self.cond, self.loop, self.sequence, self.sequence, self.assign]
        self.budget -= 1
        with self.tf.control_dependencies([token]):
            return self.random.choice(makers)(token, depth - 1)

    def assign(self, token: Any, depth: int) -> Any:
        constant = float(self.random.randint(1, 9))
        update = self.random.choice([lambda: self.state.assign(self.state.read_value() * 0.5 + constant),
                                     lambda: self.v1.assign(self.state, constant - self.now()),
                                     lambda: self.v1.assign_add(self.state, constant),
                                     lambda: self.v1.assign_sub(self.state, token)])()  # fmt: skip
        with self.tf.control_dependencies([update]):
            return self.tf.identity(self.state.read_value()) * 0.25

    def scatter(self, token: Any, depth: int) -> Any:
        update = self.random.choice([self.v1.scatter_add, self.v1.scatter_update])
        made = update(
            self.rows, [self.random.randrange(3)], self.tf.reshape(self.state.read_value(), [1])
        )
        with self.tf.control_dependencies([made]):
            return self.tf.reduce_sum(self.rows.read_value()) * 0.125

    def pass_on(self, token: Any, depth: int) -> Any:
        """Through a queue."""
        with self.tf.control_dependencies([self.queue.enqueue(self.state.read_value())]):
            taken = self.queue.dequeue()
        with self.tf.control_dependencies([taken]):
            return self.assign(taken, depth)

    def now(self) -> Any:
        """The value at the moment when who uses it runs: a reference.

        (What `Identity` of one shows later, nothing defines.)
        """
        return self.state._ref() if hasattr(self.state, "_ref") else self.state.read_value()

    def look(self, token: Any, depth: int) -> Any:
        with self.tf.control_dependencies([self.v1.Assert(self.tf.equal(token, token), [token])]):
            return self.tf.identity(self.v1.random_uniform([]) * 0.0 + token)

    def sequence(self, token: Any, depth: int) -> Any:
        return self.step(self.step(token, depth), depth)

    def cond(self, token: Any, depth: int) -> Any:
        predicate = self.tf.math.logical_xor(
            self.state.read_value() > 3.0, self.random.random() < 0.5
        )
        other = self.random.random() < 0.5
        return self.v1.cond(
            predicate,
            lambda: self.step(token, depth),
            lambda: self.step(token, depth) if other else token * 2.0,
        )

    def loop(self, token: Any, depth: int) -> Any:
        limit, tests = self.random.randint(1, 3), self.random.random() < 0.3

        def test(i: Any, token: Any) -> Any:
            within = i < limit
            if tests:  # the predicate runs once more than the body
                with (
                    self.tf.control_dependencies([token]),
                    self.tf.control_dependencies([self.v1.assign_add(self.state, 0.5)]),
                ):
                    return self.tf.identity(within)
            return within

        def body(i: Any, token: Any) -> Any:
            made = self.step(token, depth)
            with self.tf.control_dependencies([made]):
                return i + 1, made

        return self.v1.while_loop(test, body, [0, token])[1]


def record(tf: Any, seed: int, directory: str, x: Any) -> Recorded:
    """Write the graph of ``seed`` as a TF 1.x SavedModel; variables are references for even
    seeds.
    """
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.variable_scope("", use_resource=seed % 2 == 1):
        forge = Forge(tf, seed)
        placeholder, y, count, weights = forge.write()
        with v1.Session() as session:
            session.run(v1.global_variables_initializer())
            v1.saved_model.simple_save(
                session, directory, {"x": placeholder}, {"y": y, "count": count}
            )
            outputs = session.run({"y": y, "count": count}, {placeholder: x})
            names = ["x", *(weight.name for weight in weights)]
            found = dict(zip(names, v1.gradients(tf.reduce_sum(y), [placeholder, *weights])))
            dense = {
                name: tf.convert_to_tensor(gradient)
                for name, gradient in found.items()
                if gradient is not None
            }
            return Recorded(outputs, session.run(dense, {placeholder: x}))


def record_effects(tf: Any, seed: int, directory: str) -> list[dict[str, Any]]:
    """Write a program of effects as a TF 1.x SavedModel; what a Session's first runs of it left,
    variables being references for even seeds."""
    v1 = tf.compat.v1
    with (
        tf.Graph().as_default(),
        v1.variable_scope("", use_resource=seed % 2 == 1),
        v1.Session() as session,
    ):
        start = v1.placeholder(tf.float32, [], name="start")
        state, rows = Effects(tf, seed).write(start)
        outputs = {"state": state, "rows": rows}
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, directory, {"start": start}, outputs)
        return [session.run(outputs, {start: float(number)}) for number in range(3)]
