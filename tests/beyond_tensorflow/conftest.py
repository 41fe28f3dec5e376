"""What the tests of what TensorFlow never delivered share."""

from __future__ import annotations

import pytest

import reference_impl


@pytest.fixture(scope="session")
def tf():
    return pytest.importorskip("tensorflow")


@pytest.fixture
def registered():
    """Registers classes and takes the registrations back."""
    names = []

    def register(name, cls, **keywords):
        names.append(name)
        return reference_impl.register(name, cls, **keywords)

    yield register
    for name in names:
        reference_impl.unregister(name)


@pytest.fixture(scope="session")
def net_class(tf):
    class Net(tf.Module):
        def __init__(self, units):
            super().__init__()
            self.units = units
            self.var = None
            self.noise = None

        def build(self, x):
            self.var = tf.Variable(x * tf.ones(self.units))
            self.noise = tf.Variable(tf.random.normal([self.units]), trainable=False)
            self.sum = tf.Variable(self.noise + 1.0)

        @tf.function
        def do(self, x):
            if self.var is None:
                self.build(x)
            return x + self.var

        @tf.function
        def noisy(self):
            return self.noise + 0.0

        @tf.function
        def total(self):
            return self.sum + 0.0

    return Net


@pytest.fixture(scope="session")
def net_export(tf, net_class, tmp_path_factory):
    root = tf.Module()
    root.net = net_class(5)
    root.net.do(tf.constant(1.0))
    root.net.noisy()
    root.net.total()
    root.net.var.assign([1.0, 2.0, 3.0, 4.0, 5.0])
    path = tmp_path_factory.mktemp("init") / "net"
    reference_impl.save(root, path)
    return path
