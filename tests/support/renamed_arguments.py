"""Artifacts with every input and output of every signature called otherwise, and in the opposite
order; and their requests.
"""

import json
import shutil

from compat_matrix.cells.plan import Cell
from compat_matrix.checks import run_cell
from compat_matrix.requests.given import as_artifact
from compat_matrix.requests.policies import RELEASES
from compat_matrix.runtimes.runtime import local_runtime
from reference_impl.format.container import layout
from reference_impl.format.names import RESERVED_SIGNATURES
from savedmodel_common import tensors
from savedmodel_tools.edits.arguments import rename_arguments
from savedmodel_tools.edits.run import edit


def opposite(names, prefix):
    """Old name -> new one: the first in the order of names becomes the last."""
    return {name: f"{prefix}_{len(names) - number:03}" for number, name in enumerate(sorted(names))}


def all_names(model):
    """(tags, signature) -> new names of inputs, of outputs."""
    return {
        (",".join(sorted(graph.meta_info_def.tags)), key): (
            opposite(item.inputs, "given"),
            opposite(item.outputs, "found"),
        )
        for graph in layout.read(model).saved_model.meta_graphs
        for key, item in graph.signature_def.items()
        if key not in RESERVED_SIGNATURES
    }


def rename_all(model, out, names=None, back=False):
    """The model with other names in all signatures."""

    def change(draft):
        for (tags, key), pairs in (names or all_names(model)).items():
            given, found = (
                ({new: old for old, new in pair.items()} for pair in pairs) if back else pairs
            )
            rename_arguments(draft, key, given, found, tags)

    return edit(model, out, change)


def renamed_artifact(artifact, folder):
    """An artifact of the renamed model, with the recorded requests and answers under their new
    names.
    """
    names = all_names(artifact / "model")
    rename_all(artifact / "model", folder / "model", names)
    shutil.copytree(artifact / "io", folder / "io")
    for request in json.loads((folder / "io" / "io.json").read_text())["requests"]:
        if request["kind"] == "signature":
            pairs = names[",".join(sorted(request["tags"])), request["signature"]]
            for part, renamed in zip(("inputs", "outputs"), pairs):
                if request.get(part):
                    found = tensors.load(artifact / "io" / request[part])
                    new = {}
                    for name, value in found.items():  # "x", or "x/indices" of a composite one
                        whole = name if name in renamed else name.rpartition("/")[0]
                        new[renamed.get(whole, whole) + name[len(whole) :]] = value
                    tensors.save(folder / "io" / request[part], new)
    return as_artifact(folder / "model", folder / "artifact", RELEASES, folder / "io").directory


def observed(artifact, host, consumer, check="values"):
    """What a consumer of the local runtime makes of an artifact."""
    version = str(local_runtime().tensorflow_version)
    names = {
        "case": "renamed",
        "producer": "fixture",
        "producer_version": version,
        "consumer_version": version,
    }
    places = {"runtime": "local", "producer_runtime": "local", "artifact": str(artifact)}
    return run_cell(Cell(**names, consumer=consumer, check=check, **places), host, host.out)
