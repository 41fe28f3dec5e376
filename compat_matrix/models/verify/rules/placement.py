"""Devices written into the graph."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Optional

from compat_matrix.models.verify.findings import Fault, Severity, graph_rule

if TYPE_CHECKING:
    from compat_matrix.models.verify.model import Graph, Model

_OLD = re.compile(r"/(cpu|gpu):(\d+|\*)\Z", re.IGNORECASE)
_HERE = ("", "job:localhost", "replica:0", "task:0", "replica:*", "task:*")
_CPU = ("", "CPU:0", "CPU:*", "CPU")


@graph_rule(
    "SMC501",
    "device-pinned",
    Severity.WARNING,
    summary="Nodes are pinned to a device that not every machine has.",
    why="Without soft placement loaders refuse the model where the device is missing; another job or task exists in no "
    "single process.",
    fix="Export outside of tf.device, or with clear_devices=True in TF 1.x. For an accelerator on purpose: use a tag (gpu, tpu).",
)
def device_pinned(model: Model, graph: Graph) -> Iterator[Fault]:
    """One finding for a device: how often, and the first node."""
    first: dict[str, tuple[Optional[str], str]] = {}
    counts: dict[str, int] = {}
    for body in graph.bodies:
        for number, device in enumerate([node.device for node in body.nodes]):
            if device:
                first.setdefault(device, (body.function, body.nodes[number].name))
                counts[device] = counts.get(device, 0) + 1
    tags = {tag.lower() for tag in graph.proto.meta_info_def.tags}
    for device, (function, name) in first.items():
        if everywhere(device):
            continue
        job, kind = parts(device)
        meant = not job and kind.partition(":")[0].lower() in tags
        nodes = f"{counts[device]} nodes are" if counts[device] > 1 else "a node is"
        by_tag = ", as the tags say" if meant else ""
        yield Fault(f"{nodes} on {device}{by_tag}", node=name, function=function, severity=Severity.INFO if meant else None)


def everywhere(device: str) -> bool:
    """Return whether every machine has a device."""
    job, kind = parts(device)
    return not job and kind in _CPU


def parts(device: str) -> tuple[str, str]:
    """The job and task, empty for those of every process; the device, as ``GPU:0``, empty for any."""
    job, kind = [], ""
    for part in device.strip("/").split("/"):
        key, _, value = part.partition(":")
        if key.lower() == "device":
            name, _, number = value.partition(":")
            kind = f"{name.upper()}:{number or '*'}"
        elif _OLD.match(f"/{part}"):
            kind = part.upper()
        elif (key, value) not in (
            ("job", "localhost"),
            ("replica", "0"),
            ("task", "0"),
            ("replica", "*"),
            ("task", "*"),
            ("", ""),
        ):
            job.append(part)
    return "/".join(job), kind
