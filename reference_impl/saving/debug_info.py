"""Make debug/saved_model_debug_info.pb: the positions in the author's source where nodes of traced
functions were made.

There are two forms. TensorFlow before 2.13 wrote the frames of every node beside its name, and
`tf.saved_model.load` still reads only this form; later releases write numbers of traces and frames.
The file has both.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable
from typing import Any

import tensorflow as tf

from reference_impl.format import schema
from reference_impl.functions.names import ExportName
from reference_impl.saving.closed_library import ClosedLibrary
from reference_impl.saving.traced_graphs import traced_graphs

# Frames of TensorFlow's own code are left out: they do not help the author of a model.
_TENSORFLOW = os.path.dirname(os.path.realpath(tf.__file__)) + os.sep  # noqa: PTH120


def debug_info(library: ClosedLibrary, functions: Iterable[Any]) -> schema.GraphDebugInfo:
    """Return the GraphDebugInfo of the functions traced here and of their callees.

    Loaded functions have no source.

    Nodes are called ``node@function``, with the names of the export.
    """
    out = schema.GraphDebugInfo()
    files: dict[str, int] = {}
    seen: set[ExportName] = set()
    for function in functions:
        for name, graph in traced_graphs(function, library):
            if name in seen:
                continue
            seen.add(name)
            known = {node.name for node in library.definitions[name].node_def}
            for operation in graph.get_operations():
                frames = [
                    frame
                    for frame in operation.traceback or ()
                    if not str(frame.filename).startswith(_TENSORFLOW)
                ]
                if frames and operation.name in known:
                    _add(out.traces[f"{operation.name}@{name}"], frames, files)
    out.files.extend(files)
    _add_numbers(out)
    return out


def _add_numbers(out: schema.GraphDebugInfo) -> None:
    """Add the newer form: each frame and each stack once, by number."""
    frames: dict[bytes, int] = {}
    stacks: dict[tuple[int, ...], int] = {}
    for name, trace in sorted(out.traces.items()):
        stack = []
        for frame in trace.file_line_cols:
            number = frames.setdefault(schema.serialize(frame), len(frames) + 1)
            out.frames_by_id[number].CopyFrom(frame)
            stack.append(number)
        number = stacks.setdefault(tuple(stack), len(stacks) + 1)
        out.traces_by_id[number].frame_id[:] = stack
        out.name_to_trace_id[name] = number


def _add(trace: schema.GraphDebugInfo.StackTrace, frames: list[Any], files: dict[str, int]) -> None:
    for frame in reversed(frames):  # the innermost first
        index = files.setdefault(str(frame.filename), len(files))
        code = linecache.getline(str(frame.filename), frame.lineno or 0).strip()
        trace.file_line_cols.add(
            file_index=index, line=frame.lineno or 0, func=str(frame.name), code=code
        )
