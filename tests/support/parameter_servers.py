"""Saves a model whose variables are on two parameter servers; prints the data files and what
readers see, as JSON.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

import tensorflow as tf

import reference_impl


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return int(listening.getsockname()[1])


class Recorded(tf.train.experimental.ShardByTaskPolicy):
    """Notes which tensors it is asked about together."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def __call__(self, tensors: Any) -> Any:
        devices = {
            tf.DeviceSpec.from_string(
                str(getattr(t.device, "to_string", lambda t=t: t.device)())
            ).job
            for t in tensors
        }
        self.asked.append(
            [sorted(map(str, devices)), sorted(tensor.checkpoint_key for tensor in tensors)]
        )
        return super().__call__(tensors)


def main(out: Path) -> None:
    cluster = tf.train.ClusterSpec({"ps": [f"localhost:{free_port()}" for _ in range(2)]})
    servers = [tf.distribute.Server(cluster, job_name="ps", task_index=task) for task in range(2)]
    tf.config.experimental_connect_to_cluster(cluster)
    root = tf.Module()
    for task, _ in enumerate(servers):
        with tf.device(f"/job:ps/task:{task}"):
            setattr(root, f"v{task}", tf.Variable(10.0 * (task + 1)))
    root.local = tf.Variable(30.0)
    found: dict[str, Any] = {}
    for name, save in (("ours", reference_impl.save), ("theirs", tf.saved_model.save)):
        policy = Recorded()
        save(
            root,
            str(out / name),
            options=tf.saved_model.SaveOptions(experimental_sharding_callback=policy),
        )
        files = sorted(path.name for path in (out / name / "variables").iterdir())
        found[name] = {"files": files, "asked": policy.asked}
    loads = (reference_impl.load, tf.saved_model.load)
    loaded = [load(str(out / "ours")) for load in loads]
    found["answers"] = [[float(model.v0), float(model.v1), float(model.local)] for model in loaded]
    print(json.dumps(found), flush=True)
    os._exit(0)  # servers never end


if __name__ == "__main__":
    main(Path(sys.argv[1]))
