"""Names of devices in a file."""

from __future__ import annotations

import pytest

from reference_impl.errors import MalformedError

pytestmark = pytest.mark.tensorflow


@pytest.mark.parametrize("name", ["", "/CPU:0", "/job:worker/replica:0/task:1/device:GPU:3"])
def test_a_device_is_returned(tf, name):
    from reference_impl.functions.devices import checked_device

    assert checked_device(name, "m.pb", "v") == name


@pytest.mark.parametrize("name", ["/job:../../x:;", "CPU CPU", "/device:GPU:x"])
def test_other_text_is_refused_by_name(tf, name):
    from reference_impl.functions.devices import checked_device

    with pytest.raises(MalformedError, match="does not exist") as raised:
        checked_device(name, "m.pb", "v")
    assert (raised.value.file, raised.value.node) == ("m.pb", "v")
