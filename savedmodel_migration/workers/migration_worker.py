"""Everything a migration asks of a TensorFlow, in one warm process: convert, then ask the old and
the new in four ways.

Python 3.6 syntax. A request that names a ``role`` is answered as that worker would: a process for
each of the four would import TensorFlow four times for every worker of the pool, and a zoo has
thousands of small models.
"""

import collections
import contextlib
import warnings
import weakref

import numpy as np
from savedmodel_compat_workers import (
    c_api_worker,
    nests,
    protocol,
    reference_worker,
    signature_wire,
    table_contents,
    tf2_worker,
    v1_session_worker,
)

from savedmodel_common import tensors as tensor_file

_made = (
    weakref.WeakKeyDictionary()
)  # graph -> {(signature, inputs): gradients}; they cost more to make than to run
FLOATS = ("float16", "bfloat16", "float32", "float64")

IMPORTS = ("tensorflow", "reference_impl")
OWN = (
    "gradients",
    "tables",
    "held",
    "rounding",
)  # requests about a model of a role that the role does not know


class MigrationWorker(protocol.Worker):
    """``convert``, ``gradients`` and ``canonical`` of its own; the rest is its roles'."""

    name = "migration"
    capabilities = ("convert",)

    def __init__(self):
        super(MigrationWorker, self).__init__()
        made = (
            reference_worker.ReferenceWorker(),
            tf2_worker.TF2Worker(),
            v1_session_worker.V1SessionWorker(),
            c_api_worker.CApiWorker(),
        )
        self.roles = {role.name: role for role in made}
        self.refusals = made[0].refusals
        session = self.roles["v1_session"]
        session.config = session.v1.ConfigProto(allow_soft_placement=True)  # as without one
        session.config.graph_options.rewrite_options.disable_meta_optimizer = True

    def op_optimize(self, request):
        """Whether functions are optimized from now on, except in the C API, which does everything
        that TensorFlow does to one.

        Where they are not, equal graphs round alike, and a model that is asked twice is not
        optimized for longer than it runs.
        """
        self.roles["tf2"].tf.config.optimizer.set_experimental_options(
            {"disable_meta_optimizer": not request["on"]}
        )
        return {}

    def versions(self):
        return self.roles["tf2"].versions()

    def answer(self, request):
        role = self.roles.get(request.get("role"))
        if role is None or request.get("op") in OWN:
            return super(MigrationWorker, self).answer(request)
        return role.answer(request)

    def op_convert(self, request):
        """Load one MetaGraph, save it as a SavedModel of TF 2.

        Says what was warned of, and what never had a value.

        ``handle`` in place of ``dir``: it was loaded as ``reference``.
        Nobody waits for the disk here: who asks does so, while the new model is proved.
        """
        reference = self.roles["reference"].reference
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            loaded = "handle" in request
            root = (
                self.roles["reference"]._model(request).root
                if loaded
                else reference.load(request["dir"], request["tags"])
            )
            options = reference.SaveOptions(
                extra_tags=tuple(request["tags"]), strict=not request["partial"], sync=False
            )
            reference.save(root, request["target"], options=options)
        unusable = {
            key: str(function.reason)
            for key, function in root.signatures.items()
            if getattr(function, "reason", None) is not None
        }
        return {
            "uninitialized": sorted(getattr(root, "uninitialized_variables", ())),
            "unusable": unusable,
            "warnings": [str(item.message) for item in caught],
        }

    def op_canonical(self, request):
        """The content hash of a SavedModel."""
        from savedmodel_tools.canonical import form

        return {"hash": form.canonical(request["dir"]).hash}

    def op_tables(self, request):
        """Return the contents of tables; ``types``: pairs of key and value dtypes to try for tables
        of TF 2.
        """
        role = self.roles[request["role"]]
        model = role._model(request)
        if request["role"] == "v1_session":
            return {"tables": table_contents.of_session(role.tf, model.graph, model.session)}
        return {
            "tables": table_contents.of_resources(
                role.tf, _resources(role.tf, model.root), request["types"]
            )
        }

    def op_gradients(self, request):
        """d(sum of floating outputs) / d(variables, floating inputs) of a signature, as far as
        there is one.

        ``left_out``: outputs that do not count.
        """
        role = self.roles[request["role"]]
        model = role._model(request)
        inputs = tensor_file.load(request["inputs"])
        gradients = _session_gradients if request["role"] == "v1_session" else _tape_gradients
        found = gradients(role, model, request["signature"], inputs, request.get("left_out", ()))
        tensor_file.save(request["outputs"], protocol.named(sorted(found.items())))
        return {}

    def op_held(self, request):
        """Save what the variables of a session hold, by name.

        A variable without a value is left out.
        """
        role = self.roles[request["role"]]
        model = role._model(request)
        held = []
        for variable in _variables(role, model):
            with contextlib.suppress(role.tf.errors.OpError):
                dtype = variable.dtype.base_dtype.name
                value = np.asarray(
                    model.session.run(variable), dtype=object if dtype == "string" else None
                )
                held.append((variable.op.name, tensor_file.from_numpy(value, dtype)))
        tensor_file.save(request["outputs"], protocol.named(sorted(held)))
        return {}

    def op_rounding(self, request):
        """How far rounding may move each output of a signature in a session, or each gradient
        (``gradients``), measured on it.

        Every variable, constant and input is rounded otherwise, a few times. ``bounds``: name ->
        how far an entry may be off.
        """
        from savedmodel_migration.keras_2_to_3 import rounding

        role = self.roles[request["role"]]
        model = role._model(request)
        inputs = tensor_file.load(request["inputs"])
        wanted, feed = _wanted(role, model, request, inputs)
        wanted = {
            name: tensor
            for name, tensor in wanted.items()
            if tensor.dtype.base_dtype.name in FLOATS
        }
        run = _Rounded(role, model, feed)
        found = model.session.run(wanted, feed)
        moved = dict.fromkeys(found, 0.0)
        random = np.random.RandomState(5)
        try:
            for _ in range(rounding.DRAWS):
                other = model.session.run(
                    wanted, run.draw(lambda value: rounding.rounded(value, random))
                )
                for name, value in other.items():
                    off = np.abs(np.asarray(value, "float64") - np.asarray(found[name], "float64"))
                    moved[name] = (
                        max(moved[name], float(np.nanmax(off))) if off.size else moved[name]
                    )
        finally:
            run.restore()
        terms = rounding.longest_sum(run.weights, [np.shape(value) for value in feed.values()])
        return {
            "bounds": rounding.bounds(
                {name: np.asarray(value) for name, value in found.items()}, moved, terms
            )
        }


class _Rounded(object):
    """The numbers of a session's model, which are set to others: variables, constants, and what is
    fed.
    """

    def __init__(self, role, model, feed):
        self.model, self.feed, self.variables = model, feed, []
        for variable in _variables(role, model):
            if variable.dtype.base_dtype.name in FLOATS:
                with contextlib.suppress(role.tf.errors.OpError):
                    self.variables.append((variable, model.session.run(variable)))
        self.constants = {}
        for operation in model.graph.get_operations():
            if operation.type != "Const" or operation.outputs[0].dtype.name not in FLOATS:
                continue
            (tensor,) = operation.outputs
            if model.graph.is_feedable(tensor) and tensor.name not in feed:
                self.constants[tensor.name] = role.tf.make_ndarray(operation.get_attr("value"))

    @property
    def weights(self):
        return [value for _, value in self.variables] + list(self.constants.values())

    def draw(self, change):
        """Set the variables; return what is to be fed."""
        self._load([(variable, change(value)) for variable, value in self.variables])
        given = {name: change(value) for name, value in self.constants.items()}
        given.update((name, change(np.asarray(value))) for name, value in self.feed.items())
        return given

    def restore(self):
        self._load(self.variables)

    def _load(self, values):
        for variable, value in values:
            initializer = variable.initializer
            self.model.session.run(initializer, {initializer.inputs[1]: value})


def _variables(role, model):
    with model.graph.as_default():
        return role.v1.global_variables() + role.v1.local_variables()


def _wanted(role, model, request, inputs):
    """The tensors that a request asks for by name, and what is fed."""
    names, produced = signature_wire.feed_names(model.signatures, request["signature"], inputs)
    feed = {names[name]: role._to_numpy(tensor) for name, tensor in inputs.items()}
    produced = [entry for entry in produced if entry.name not in request["left_out"]]
    if request["gradients"]:
        return _make_session_gradients(role, model, names, produced, inputs), feed
    return {entry.name: model.graph.get_tensor_by_name(entry.tensor) for entry in produced}, feed


def _resources(tf, root):
    """The resources of a loaded model: a converted one lists them, one of TF 2 has them somewhere
    in its tree.
    """
    if hasattr(root, "resources"):
        return root.resources
    return [
        item
        for item in tf.train.TrackableView(root).descendants()
        if hasattr(item, "resource_handle")
    ]


def _session_gradients(role, model, key, inputs, left_out):
    names, produced = signature_wire.feed_names(model.signatures, key, inputs)
    made = _made.setdefault(model.graph, {})
    place = key, tuple(sorted(inputs)), tuple(left_out)
    if place not in made:
        counted = [entry for entry in produced if entry.name not in left_out]
        made[place] = _make_session_gradients(role, model, names, counted, inputs)
    wanted = made[place]
    feed = {names[name]: role._to_numpy(tensor) for name, tensor in inputs.items()}
    values = model.session.run(wanted, feed)
    return {
        name: tensor_file.from_numpy(np.asarray(value), wanted[name].dtype.base_dtype.name)
        for name, value in values.items()
    }


def _make_session_gradients(role, model, names, produced, inputs):
    """``{name: tensor}`` in the graph of the session."""
    v1, tf = role.v1, role.tf
    with model.graph.as_default():
        outputs = [model.graph.get_tensor_by_name(entry.tensor) for entry in produced]
        outputs = [tensor for tensor in outputs if tensor.dtype.base_dtype.name in FLOATS]
        sources = collections.OrderedDict(
            ("variable/" + variable.op.name, variable)
            for variable in v1.global_variables() + v1.local_variables()
            if variable.dtype.base_dtype.name in FLOATS
        )
        for name, tensor in inputs.items():
            if tensor.dtype in FLOATS:
                sources["input/" + name] = model.graph.get_tensor_by_name(names[name])
        if not outputs or not sources:
            return {}
        total = v1.add_n([v1.reduce_sum(v1.cast(tensor, tf.float64)) for tensor in outputs])
        with _flow_of_v1(v1):
            gradients = zip(sources, v1.gradients(total, list(sources.values())))
        return {name: v1.convert_to_tensor(value) for name, value in gradients if value is not None}


@contextlib.contextmanager
def _flow_of_v1(v1):
    """The gradient of a TensorArray in a session's graph is written for the control flow of TF
    1.
    """
    before = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    try:
        yield
    finally:
        if before:
            v1.enable_control_flow_v2()


def _tape_gradients(role, model, key, inputs, left_out):
    tf, root = role.tf, model.root
    sources = collections.OrderedDict(
        ("variable/" + variable.name.split(":")[0], variable)
        for variable in getattr(root, "variables", ())
        if variable.dtype.name in FLOATS
    )
    given = {name: nests.to_tf(tf, tensor) for name, tensor in inputs.items()}
    sources.update(
        ("input/" + name, tensor) for name, tensor in given.items() if tensor.dtype.name in FLOATS
    )
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(list(sources.values()))
        function = root.signatures[key]
        answer = function(
            **{tf2_worker.keyword(function, name): tensor for name, tensor in given.items()}
        )
        answer = {name: value for name, value in answer.items() if not _is_left_out(name, left_out)}
        outputs = [
            value
            for value in tf.nest.flatten(answer, expand_composites=True)
            if value.dtype.name in FLOATS
        ]
        if not outputs:
            return {}
        total = tf.add_n([tf.reduce_sum(tf.cast(value, tf.float64)) for value in outputs])
    found = tape.gradient(total, dict(sources))
    return {
        name: nests.from_tf(tf, tf.convert_to_tensor(value))
        for name, value in found.items()
        if value is not None
    }


def _is_left_out(name, left_out):
    """A sparse output is left out if one of its tensors is."""
    return any(item == name or item.startswith(name + "/") for item in left_out)


def main():
    protocol.serve(MigrationWorker)


if __name__ == "__main__":
    main()
