"""List the signatures of the models in a folder. Needs no TensorFlow.

python examples/list_signatures.py fixtures_v1
"""

import sys
from pathlib import Path

import reference_impl

for file in sorted(Path(sys.argv[1]).rglob("saved_model.pb")):
    try:
        model = reference_impl.inspect(file.parent)
    except reference_impl.SavedModelError as error:
        print(f"{file.parent}: {error}")
        continue
    for graph in model.meta_graphs:
        for signature in graph.signatures:
            inputs = ", ".join(slot.name for slot in signature.inputs)
            outputs = ", ".join(slot.name for slot in signature.outputs)
            print(f"{file.parent} {'/'.join(graph.tags)}: {signature.key}({inputs}) -> {outputs}")
