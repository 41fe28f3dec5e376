"""Write `reference_eval/op_definitions.pbtxt`, with TensorFlow 2.21: ``python -m
docs.op_definitions``.

The file holds the OpDefs, without texts, of every op of the evaluator, and of the ops that it
names already: those that the rewriting of TF 1.x graphs adds. ``--check`` compares instead.
"""

from __future__ import annotations

import sys
from pathlib import Path

from google.protobuf import text_format

from reference_eval import registry
from reference_impl import tensorflow_api
from reference_impl.format import schema

OUT = Path(__file__).parents[1] / "reference_eval" / "op_definitions.pbtxt"
HEAD = (
    "# The OpDefs of the ops of the evaluator, and of those that rewriting of TF 1.x graphs adds."
    " Written by docs/op_definitions.py.\n"
)


def without_texts(definition: schema.OpDef) -> schema.OpDef:
    """Return a copy of an OpDef without its descriptions and without types of handles."""
    out = schema.copy_of(definition)
    out.ClearField("summary")
    out.ClearField("description")
    for item in (*out.input_arg, *out.output_arg, *out.attr):
        item.ClearField("description")
    for argument in (*out.input_arg, *out.output_arg):
        argument.ClearField("handle_data")
        argument.ClearField("experimental_full_type")
    return out


def content() -> str:
    """Return the text of the file for the TensorFlow of this process."""
    named = text_format.Parse(OUT.read_text(encoding="utf-8"), schema.OpList())
    names = {definition.name for definition in named.op}.union(registry.known())
    out = schema.OpList()
    for name in sorted(names):
        definition = tensorflow_api.op_def(name)
        if definition is not None:  # else it is an op of another release
            out.op.append(without_texts(definition))
    return HEAD + text_format.MessageToString(out)


def main() -> int:
    """Write the file, or return 1 with ``--check`` if it is out of date."""
    written = content()
    if "--check" not in sys.argv:
        OUT.write_text(written, encoding="utf-8")
        return 0
    if written == OUT.read_text(encoding="utf-8"):
        return 0
    print(f"{OUT} is out of date; run python -m docs.op_definitions", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
