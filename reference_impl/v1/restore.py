"""Give the variables of a TF 1.x model their values from a checkpoint.

There are five ways, tried in this order; each takes the variables that are left:

1. `NOTHING`: the caller wants no values, or the model has none.
2. `_read_plain`: values that the restore op assigns unchanged are read by us (in eager mode, from
   the model's own checkpoint). That takes a third of the time.
3. `_run_restore_op`: the whole restore op of the SaverDef, if nothing was read yet.
4. `_run_part`: the part of the restore op for the other variables.
5. `_restore_by_name`: modules of TensorFlow Hub's first format have no SaverDef. Each variable is
   read by its name.

RFC: V1-08
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Collection
from typing import NamedTuple, Optional

import tensorflow as tf

from reference_impl.drop_in import graph_mode
from reference_impl.errors import MissingFileError, UnsupportedModelError, V1CheckpointError
from reference_impl.format.bundle.reader import BundleReader
from reference_impl.format.container.layout import VARIABLES
from reference_impl.functions.registered_function import RegisteredFunction
from reference_impl.functions.tensors import Values
from reference_impl.graph.edges import Edge
from reference_impl.graph.restore_plan import Restored, restore_plan
from reference_impl.v1.initialization import Initialization
from reference_impl.v1.live_program import LiveProgram
from reference_impl.v1.reading.plain_restore import plain_restores
from reference_impl.v1.reading.selection import part_of_restore

_log = logging.getLogger(__name__)


class ByName(NamedTuple):
    """A variable, and the tensor of the checkpoint that is its value."""

    variable: tf.Variable
    position: Restored


class Restore:
    """The restore of a live program. The load runs it once; `V1Root.restore` runs it again.

    Attributes:
      absent: keys of variables that the checkpoint lacks, or has with another dtype; empty unless
        ``allow_partial_checkpoint`` is set.
      function: the restore op, without the variables that are absent; None without a SaverDef.
      read_keys: id of a variable -> its key, for variables that were read by us.

    Raises UnsupportedModelError: a variable is absent, and a function restores all or nothing.
    """

    def __init__(self, live: LiveProgram):
        self._live = live
        self.absent = absent_keys(live)
        self.function = self._make_function()
        self.read_keys: dict[int, str] = {}

    def _make_function(self) -> Optional[RegisteredFunction]:
        live = self._live
        restore = (live.part or live.program).restore_function
        if restore is not None and self.absent:
            held = {live.program.handle(Edge(node)).source for node in self._present}
            restore = part_of_restore(live.program, {name for name in held if live.wants(name)})
            nodes = restore.function.node_def if restore is not None else ()
            calls = [node.name for node in nodes if live.library.index.called(node)]
            if calls:
                reason = (
                    "allow_partial_checkpoint: a function restores all or nothing, and"
                    f" {min(self.absent)} is absent"
                )
                raise UnsupportedModelError(reason, file=live.file, node=calls[0], clause="V1-08")
        if restore is None:
            return None
        return live.function(restore, {"prefix": tf.TensorSpec([], tf.string)}, {})

    @functools.cached_property
    def _present(self) -> dict[str, Restored]:
        """Node of a variable -> position of its value in the checkpoint, without absent ones."""
        plan = restore_plan(self._live.meta_graph, self._live.file)
        return {item.node: item for item in plan if item.key not in self.absent}

    @functools.cached_property
    def _by_name(self) -> list[ByName]:
        live = self._live
        found = []
        for variable in live.program.variables:
            if live.wants(variable.name) and variable.name in self._present:
                made = live.state[variable.name]
                found.append(ByName(made, self._present[variable.name]))
        return found

    @property
    def variables(self) -> list[tf.Variable]:
        """The variables that get a value."""
        if self.function is None:
            return [item.variable for item in self._by_name]
        return [owner for owner in self.function.owners if isinstance(owner, tf.Variable)]

    def load(self, values: Initialization) -> bool:
        """Restore from the checkpoint of the model; return whether there was something to do.

        Raises MissingFileError if there is no checkpoint, and the errors of a damaged one.
        """
        live = self._live
        has_values = self.function is not None or bool(live.program.variables)
        if live.options.skip_checkpoint or not has_values:
            return False
        if not live.directory.root.names(VARIABLES):
            self._check_that_none_is_needed()
            return False
        prefix = live.directory.checkpoint_prefix
        read: list[tf.Variable] = []
        # A malicious index can make the restoring kernel abort the process or allocate gigabytes.
        with contextlib.suppress(V1CheckpointError), BundleReader(prefix) as reader:
            reader.check_places()
            if live.library.eager:
                read = self._read_plain(reader)
        values.by_restoring(lambda: self.run(tf.constant(str(prefix)), read), self.variables)
        return True

    def _check_that_none_is_needed(self) -> None:
        function, options = self.function, self._live.options
        if function is not None and function.owners and not options.allow_partial_checkpoint:
            raise MissingFileError(
                "there is no checkpoint to restore the variables from",
                file=self._live.directory.checkpoint_prefix,
                clause="V1-08",
            )

    def run(self, prefix: tf.Tensor, read: Collection[tf.Variable] = ()) -> None:
        """Restore the variables except those already `read`.

        In graph mode, make the operations that restore them.
        """
        done = {id(variable) for variable in read}
        if self.function is None:
            self._restore_by_name(prefix, done)
        elif not done:
            self.function(prefix=prefix)
        else:
            self._run_rest(self.function, prefix, done)

    def _read_plain(self, reader: BundleReader) -> list[tf.Variable]:
        """Assign the variables whose values are restored unchanged from the checkpoint, and return
        these variables.
        """
        read, values = [], Values(lambda: reader, self._live.options)
        try:
            for variable, key in self._plain():
                if _fits(reader, key, variable):
                    values.assign(variable, key)
                    read.append(variable)
                    self.read_keys[id(variable)] = key
            values.finish()
        finally:
            values.close()
        return read

    def _plain(self) -> list[tuple[tf.Variable, str]]:
        """Return variables that get a whole tensor of the checkpoint, with its key."""
        if self.function is None:
            whole = [item for item in self._by_name if not item.position.slice]
            return [(item.variable, item.position.key) for item in whole]
        plain = plain_restores(self._live.library.get(self.function.saved_name))
        owners = self.function.owners  # without the prefix, which is argument 0
        return [(owners[argument - 1], key) for argument, key in plain.items()]

    def _run_rest(
        self, function: RegisteredFunction, prefix: tf.Tensor, done: Collection[int]
    ) -> None:
        left = {id(owner) for owner in function.owners if id(owner) not in done}
        if left:
            names = {name for name, made in self._live.state.items() if id(made) in left}
            self._run_part(names, prefix)

    def _run_part(self, state: Collection[str], prefix: tf.Tensor) -> None:
        """Run the part of the restore op that acts on the given state, if any."""
        extracted = part_of_restore(self._live.program, state)
        if extracted is not None:
            inputs = {"prefix": tf.TensorSpec([], tf.string)}
            self._live.function(extracted, inputs, {})(prefix=prefix)

    def _restore_by_name(self, prefix: tf.Tensor, done: Collection[int]) -> None:
        for variable, item in self._by_name:
            if id(variable) not in done:
                restored = tf.raw_ops.RestoreV2(
                    prefix=prefix,
                    tensor_names=[item.key],
                    shape_and_slices=[item.slice],
                    dtypes=[variable.dtype],
                )
                variable.assign(restored[0])

    def note_tables(self) -> None:
        """Make sessions that initialise tables restore the tables whose content the Saver saved."""
        live = self._live
        prefix = tf.constant(str(live.directory.checkpoint_prefix))
        with graph_mode.initializer_ops():
            self._run_part({name for name in live.program.resources if live.wants(name)}, prefix)


def _fits(reader: BundleReader, key: str, variable: tf.Variable) -> bool:
    """Return whether the checkpoint has a tensor of the dtype and shape of a variable.

    If it has none, the restore op reports the error.
    """
    if key not in reader or variable.shape.rank is None:
        return False
    entry = reader.entry(key)
    return entry.dtype.number == variable.dtype.as_datatype_enum and variable.shape.as_list() == [
        *entry.shape
    ]


def absent_keys(live: LiveProgram) -> frozenset[str]:
    """Return the keys of variables that no restore op takes, and warn of them: the checkpoint lacks
    them, or has them with another dtype.

    Empty unless ``allow_partial_checkpoint`` is set.
    """
    if not live.options.allow_partial_checkpoint or not live.directory.root.names(VARIABLES):
        return frozenset()
    found: set[str] = set()
    prefix = live.directory.checkpoint_prefix
    with contextlib.suppress(V1CheckpointError), BundleReader(prefix) as reader:
        for item in restore_plan(live.meta_graph, live.file):
            if item.key not in reader or reader.entry(item.key).dtype.name != item.dtype:
                found.add(item.key)
    if found:
        listed = ", ".join(sorted(found))
        _log.warning(
            "%s: left without a value, the checkpoint has none of its dtype: %s", live.file, listed
        )
    return frozenset(found)
