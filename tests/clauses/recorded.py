"""The answers that the makers of the fixtures recorded, asked again of something that was
loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from savedmodel_common import tensors

FIXTURES = Path(__file__).parents[2] / "fixtures_v1"

Ask = Callable[
    [str, Mapping[str, Any]], Mapping[str, Any]
]  # signature, arrays by name -> arrays by name


def model(fixture: str) -> Path:
    return FIXTURES / fixture / "model"


def asks(tf: Any, loaded: Any) -> Ask:
    """The signatures of a loaded object."""

    def ask(key: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        specs = loaded.signatures[key].structured_input_signature[1]
        answer = loaded.signatures[key](
            **{name: tf.constant(value, specs[name].dtype) for name, value in given.items()}
        )
        return {name: value.numpy() for name, value in answer.items()}

    return ask


@contextmanager
def session(tf: Any, directory: Path, tags: tuple[str, ...] = ("serve",)) -> Iterator[Ask]:
    """The signatures of a directory behind the v1 loader."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as opened:
        meta_graph = v1.saved_model.loader.load(opened, list(tags), str(directory))

        def ask(key: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
            signature = meta_graph.signature_def[key]
            fetches = {name: info.name for name, info in signature.outputs.items()}
            return opened.run(
                fetches, {signature.inputs[name].name: value for name, value in given.items()}
            )

        yield ask


def worker(model: Any, folder: Path) -> Ask:
    """The signatures of a model that a worker process has loaded; tensors travel as files in
    `folder`.
    """

    def ask(key: str, given: Mapping[str, Any]) -> Mapping[str, Any]:
        tensors.save(
            folder / "in.npz", {name: tensors.from_numpy(value) for name, value in given.items()}
        )
        request = {
            "kind": "signature",
            "inputs": "in.npz",
            "outputs": None,
            "tags": ["serve"],
            "id": "r",
            "signature": key,
        }
        model.ask(
            "call", 300.0, request=request, io_dir=str(folder), outputs=str(folder / "out.npz")
        )
        return {name: tensor.array for name, tensor in tensors.load(folder / "out.npz").items()}

    return ask


def check(fixture: str, ask: Ask, tags: tuple[str, ...] = ("serve",), only: str = "") -> None:
    """Ask the recorded requests in their order; the answers must be those of the live model, within
    the recorded tolerance.
    """
    folder = FIXTURES / fixture / "io"
    io = json.loads((folder / "io.json").read_text())
    asked = [item for item in io["requests"] if item["kind"] == "signature" and item["outputs"]]
    asked = [
        item
        for item in asked
        if sorted(item["tags"]) == sorted(tags) and only in ("", item["signature"])
    ]
    assert asked
    for request in asked:
        given = {
            name: tensor.array for name, tensor in tensors.load(folder / request["inputs"]).items()
        }
        answer = ask(request["signature"], given)
        wanted = dict(tensors.load(folder / request["outputs"]).items())
        assert set(answer) == set(wanted)
        for name, tensor in wanted.items():
            if tensor.dtype == "string":
                assert np.asarray(answer[name]).tolist() == tensor.array.tolist(), name
            else:
                tolerance = io["tolerance"]
                np.testing.assert_allclose(
                    answer[name], tensor.array, tolerance["rtol"], tolerance["atol"], err_msg=name
                )
