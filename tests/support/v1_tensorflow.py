"""TensorFlow as a program of 1.x has it: control flow of `Switch` and `Merge`, put back after the
module.
"""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module", name="tf")
def tensorflow_1():
    import tensorflow

    toggled = tensorflow.compat.v1.control_flow_v2_enabled()
    tensorflow.compat.v1.disable_control_flow_v2()
    yield tensorflow
    if toggled:
        tensorflow.compat.v1.enable_control_flow_v2()
