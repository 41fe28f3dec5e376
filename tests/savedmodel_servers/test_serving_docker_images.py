"""Images of a real engine: what a label says, what is not here, the stand-in."""

from __future__ import annotations

import numpy as np
import pytest
import serving_image
import serving_models
from serving_engine import LIMITS, client, home

from savedmodel_common.tensors import Tensor
from savedmodel_servers import drivers
from savedmodel_servers.drivers.base import NotHere
from savedmodel_servers.drivers.docker import DockerDriver
from savedmodel_servers.fleet import Fleet, NotServed

__all__ = ["client", "home"]  # fixtures, imported by name

pytestmark = pytest.mark.docker


def test_a_labelled_image_is_a_stand_in_whatever_it_says(client):
    labelled = serving_image.image(client, ["savedmodel-compat.standin=2.15.1"])
    try:
        assert DockerDriver(labelled).identify().kind == "standin"
    finally:
        client.images.remove(labelled, force=True)


def test_absent_image_is_never_pulled(client):
    for name in (
        "tensorflow/serving:0.0.1",
        "tensorflow/serving@sha256:" + "0" * 64,
        "nowhere/nothing",
    ):
        with pytest.raises(NotHere, match="is not here") as missing:
            drivers.of(name).identify()
        assert missing.value.command == f"docker pull {name}"
    with pytest.raises(NotHere, match="is not built") as missing:
        drivers.of("savedmodel-compat-standin:0.0.1").identify()
    assert missing.value.command == "python -m savedmodel_servers.commands.standin_image"


def test_stand_in_serves_a_fixture_over_both_transports(tmp_path):
    driver = drivers.of("standin")
    try:
        identity = driver.identify()
    except NotHere as missing:
        pytest.skip(str(missing))
    assert identity.kind == "standin"
    fixtures = serving_models.HERE.parents[1] / "fixtures_v1"
    half, pinned = fixtures / "half_plus_two/model", fixtures / "gpu_pinned/model"
    with Fleet(driver, tmp_path / "work", LIMITS) as fleet:
        served = fleet.served(half, ahead=[(pinned, ["serve"])])
        x = Tensor("float32", np.float32([[1], [2]]))
        for one in (served.grpc, served.rest):
            (y,) = one.predict(served.ref, "", {"x": x}, limit=30).values()
            assert y.array.tolist() == [[2.5], [3.0]]
        with pytest.raises(NotServed, match="GPU"):
            fleet.served(pinned)
        assert fleet.report()["started"] == 1
