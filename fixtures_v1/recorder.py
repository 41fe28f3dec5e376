"""Runs a case's generator inside its own TensorFlow 1.x and records what that TensorFlow answers.

``python -m fixtures_v1.recorder CASE OUT`` writes OUT/model, OUT/io and OUT/provenance.json. Every request is answered twice: by
the live session (or function) that was exported, and by the export loaded back with the v1 loader from another folder after
the scratch folder is gone. Both must agree bit for bit. Python 3.6 syntax, TensorFlow 1.4 to 1.15.

A generator defines ``generate(tf, rec)``; ``rec`` is the :class:`Recorder` below. Its docstring's first line is the title,
and it has the constants CLAUSES, FEATURES, RUNTIME and, where needed, TOLERANCE = (rtol, atol, reason), STATEFUL and
UNASKED = {signature: reason}.
"""

import collections
import importlib
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile

import numpy as np

import fixtures_v1

DEFAULT_KEY = "serving_default"


def _tensors():
    """The tensor container, loaded by path: the package around it need not be Python 3.6."""
    path = os.path.join(os.path.dirname(fixtures_v1.ROOT), "compat_matrix", "workers", "tensors.py")
    spec = importlib.util.spec_from_file_location("fixture_tensors", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


tensors = _tensors()

# signature, inputs: {key: value}; loaded_error: text of the error the reloaded export gives where only the live session answers.
Request = collections.namedtuple("Request", ["id", "tags", "signature", "inputs", "loaded_error"])


class Recorder(object):
    """What a generator works with: sessions, export, requests. The working directory is a scratch folder."""

    def __init__(self, tf, model):
        self.tf = tf
        self.model = model
        self.requests = []
        self._live = {}
        self._builder = None

    # -- building -------------------------------------------------------------------------------------------------

    def session(self, soft_placement=False, cpus=1):
        """A single-threaded session on the default graph: one order of summation, so one result."""
        config = self.tf.ConfigProto(
            intra_op_parallelism_threads=1, inter_op_parallelism_threads=1, allow_soft_placement=soft_placement,
            device_count={"CPU": cpus})
        return self.tf.Session(config=config)

    def initialized_session(self, **kwargs):
        """A session in which all variables and tables of the default graph are initialised."""
        sess = self.session(**kwargs)
        sess.run([self.tf.global_variables_initializer(), self.tf.local_variables_initializer()])
        sess.run(self.tf.tables_initializer())
        return sess

    def file(self, name, text):
        """Write a text file into the scratch folder, which is the working directory; returns its relative path."""
        if os.path.dirname(name):
            os.makedirs(os.path.dirname(name))
        with open(name, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        return name

    def example(self, **features):
        """A serialized tf.Example; lists of float, int or bytes/str."""
        example = self.tf.train.Example()
        for name in sorted(features):
            kinds = {float: "float_list", int: "int64_list", str: "bytes_list", bytes: "bytes_list"}
            values = features[name]
            target = getattr(example.features.feature[name], kinds[type(values[0])]) if values else None
            if target is not None:
                target.value.extend(value.encode("utf-8") if isinstance(value, str) else value for value in values)
        return example.SerializeToString()

    @staticmethod
    def empty(*shape):
        """A request value without elements."""
        return np.zeros(shape, np.float32)

    @staticmethod
    def exact(*shape):
        """Numbers k/8 with small k: products and sums of a few of them are exact in float32, in whatever order."""
        count = int(np.prod(shape))
        return (((np.arange(count) * 7 + 3) % 17 - 8) / 8.0).reshape(shape).astype(np.float32)

    def signature(self, inputs, outputs, method="tensorflow/serving/predict"):
        """A SignatureDef from {key: tensor} maps."""
        info = self.tf.saved_model.utils.build_tensor_info
        return self.tf.saved_model.signature_def_utils.build_signature_def(
            {key: info(value) for key, value in inputs.items()}, {key: info(value) for key, value in outputs.items()}, method)

    def add(self, sess, signatures, tags=("serve",), **kwargs):
        """Add a MetaGraph with SavedModelBuilder: the first one with the variables, further ones share them."""
        if self._builder is None:
            self._builder = self.tf.saved_model.builder.SavedModelBuilder(self.model)
            self._builder.add_meta_graph_and_variables(sess, list(tags), signatures, **kwargs)
        else:
            with sess.graph.as_default(), sess.as_default():
                self._builder.add_meta_graph(list(tags), signatures, **kwargs)
        self.live(sess, tags)

    def save(self, as_text=False):
        """Write what was added."""
        self._builder.save(as_text=as_text)

    def export(self, sess, signatures, tags=("serve",), as_text=False, **kwargs):
        """The common case: one MetaGraph, written at once."""
        self.add(sess, signatures, tags, **kwargs)
        self.save(as_text)

    def live(self, source, tags=("serve",)):
        """Name the live answerer of a MetaGraph: a session on the exported graph, or {signature: callable(**inputs)}."""
        self._live[frozenset(tags)] = source

    # -- asking ---------------------------------------------------------------------------------------------------

    def ask(self, signature, inputs, tags=("serve",), loaded_error=None):
        """Ask a signature; values are converted to the dtypes the signature states, sparse ones are (indices, values, dense_shape).

        With ``loaded_error`` the answer is recorded from the live session only, and the reloaded export must fail with that text.
        """
        count = sum((request.signature, request.tags) == (signature, tuple(tags)) for request in self.requests)
        name = signature if tuple(tags) == ("serve",) else "{}.{}".format("+".join(tags) or "untagged", signature)
        name = re.sub(r"[^A-Za-z0-9_.+-]", "_", name)
        taken = {request.id for request in self.requests}
        while "{}-{}".format(name, count) in taken:
            count += 1
        self.requests.append(Request("{}-{}".format(name, count), tuple(tags), signature, inputs, loaded_error))


# -- answering ------------------------------------------------------------------------------------------------------------


def components(tf, key, info):
    """The dense tensors of one signature entry as ``{npz name: (graph name, dtype name)}`` (docs/contracts.md, section 1)."""
    encoding = info.WhichOneof("encoding")
    if encoding == "composite_tensor":
        return [("{}/component_{}".format(key, index), part.name, tf.DType(part.dtype).base_dtype.name)
                for index, part in enumerate(info.composite_tensor.components)]
    dtype = tf.DType(info.dtype).base_dtype.name
    if encoding == "coo_sparse":
        sparse = info.coo_sparse
        return [(key + "/values", sparse.values_tensor_name, dtype), (key + "/indices", sparse.indices_tensor_name, "int64"),
                (key + "/dense_shape", sparse.dense_shape_tensor_name, "int64")]
    return [(key, info.name, dtype)]


def as_array(tf, value, dtype):
    """A NumPy array of the given TensorFlow dtype; strings become an object array, so that no trailing zero byte is lost."""
    if dtype == "string":
        return np.array(value, dtype=object)
    if isinstance(value, np.ndarray) and value.dtype == tf.as_dtype(dtype).as_numpy_dtype:
        return value
    return np.asarray(value).astype(tf.as_dtype(dtype).as_numpy_dtype)


def feeds(tf, signature_def, inputs):
    """Flatten a request's inputs to ``{npz name: (graph name, array, dtype)}``. Raises KeyError for unknown or missing keys."""
    if set(inputs) != set(signature_def.inputs):
        raise KeyError("inputs {} asked, signature has {}".format(sorted(inputs), sorted(signature_def.inputs)))
    out = collections.OrderedDict()
    for key in sorted(inputs):
        value = inputs[key]
        parts = components(tf, key, signature_def.inputs[key])
        if signature_def.inputs[key].WhichOneof("encoding") == "coo_sparse":
            indices, values, dense_shape = value
            value = [values, np.asarray(indices, np.int64).reshape(-1, len(dense_shape)), dense_shape]
        elif len(parts) == 1:
            value = [value]
        for (name, graph_name, dtype), part in zip(parts, value):
            out[name] = (graph_name, as_array(tf, part, dtype), dtype)
    return out


def answer_session(tf, sess, signature_def, inputs):
    """Answer one request in a session. Returns ``{npz name: Tensor}``."""
    parts = [part for key in sorted(signature_def.outputs) for part in components(tf, key, signature_def.outputs[key])]
    feed = {graph_name: array for graph_name, array, _ in feeds(tf, signature_def, inputs).values()}
    values = sess.run([graph_name for _, graph_name, _ in parts], feed)
    return collections.OrderedDict((name, to_tensor(value, dtype)) for (name, _, dtype), value in zip(parts, values))


def answer_function(tf, function, signature_def, inputs):
    """Answer one request with the Python function that was exported; it returns {output key: value}."""
    arrays = {name: tf.constant(array, dtype=dtype) for name, (_, array, dtype) in feeds(tf, signature_def, inputs).items()}
    result = function(**arrays)
    return collections.OrderedDict(
        (key, to_tensor(result[key].numpy(), tf.DType(signature_def.outputs[key].dtype).name)) for key in sorted(result))


def to_tensor(value, dtype):
    """Wrap what a session returned. Quantized arrays are structured in NumPy; their bytes are carried as integers."""
    array = np.array(value, dtype=object) if dtype == "string" else np.asarray(value)
    return tensors.from_numpy(array, dtype)


def assert_same(request, live, loaded):
    """Both answers must be equal in names, dtypes, shapes and bits (NaN equals NaN of the same bits)."""
    if list(live) != list(loaded):
        raise AssertionError("{}: live gave {}, loaded gave {}".format(request.id, list(live), list(loaded)))
    for name in live:
        a, b = live[name], loaded[name]
        same = a.dtype == b.dtype and a.array.shape == b.array.shape
        same = same and (a.array.tolist() == b.array.tolist() if a.dtype == "string" else a.array.tobytes() == b.array.tobytes())
        if not same:
            raise AssertionError("{}: output {} differs\nlive:   {!r}\nloaded: {!r}".format(request.id, name, a, b))


def assert_all_asked(module, rec, signature_defs):
    """Every signature has a request or stands in UNASKED."""
    asked = {(frozenset(request.tags), request.signature) for request in rec.requests}
    for tags, signatures in signature_defs.items():
        for key in sorted(set(signatures) - set(fixtures_v1.RESERVED_SIGNATURES) - set(getattr(module, "UNASKED", {}))):
            if (tags, key) not in asked:
                raise AssertionError("{}: signature {!r} is never asked".format(sorted(tags), key))


def answer_live(tf, rec, signature_defs):
    """Answers of the live sessions or functions, in order."""
    out = {}
    for request in rec.requests:
        source = rec._live[frozenset(request.tags)]
        signature_def = signature_defs[frozenset(request.tags)][request.signature]
        if hasattr(source, "run"):
            out[request.id] = answer_session(tf, source, signature_def, request.inputs)
        else:
            out[request.id] = answer_function(tf, source[request.signature], signature_def, request.inputs)
    return out


def check_loaded(tf, rec, model, live):
    """Load each MetaGraph with the v1 loader and compare its answers with the live ones."""
    for tags in sorted({request.tags for request in rec.requests}):
        with tf.Graph().as_default(), rec.session() as sess:
            failure, meta_graph = None, None
            try:
                meta_graph = tf.saved_model.loader.load(sess, list(tags), model)
            except Exception as error:  # judged below against what the generator announced
                failure = error
            for request in rec.requests:
                if request.tags == tags:
                    check_request(tf, sess, meta_graph, failure, request, live[request.id])


def check_request(tf, sess, meta_graph, failure, request, live):
    """One request on the reloaded export: equal answer, or exactly the announced error."""
    try:
        if failure is not None:
            raise failure
        loaded = answer_session(tf, sess, meta_graph.signature_def[request.signature], request.inputs)
    except Exception as error:
        if request.loaded_error is None or request.loaded_error not in str(error):
            raise
        return
    if request.loaded_error is not None:
        raise AssertionError("{}: the reloaded export answers, though {!r} was announced".format(request.id, request.loaded_error))
    assert_same(request, live, loaded)


# -- writing --------------------------------------------------------------------------------------------------------------


def read_signature_defs(model):
    """``{frozenset(tags): {key: SignatureDef}}`` of an export."""
    from google.protobuf import text_format
    from tensorflow.core.protobuf import saved_model_pb2

    proto = saved_model_pb2.SavedModel()
    if os.path.exists(os.path.join(model, "saved_model.pb")):
        with open(os.path.join(model, "saved_model.pb"), "rb") as stream:
            proto.ParseFromString(stream.read())
    else:
        with open(os.path.join(model, "saved_model.pbtxt"), encoding="utf-8") as stream:
            text_format.Merge(stream.read(), proto)
    return {frozenset(graph.meta_info_def.tags): dict(graph.signature_def) for graph in proto.meta_graphs}


def write_json(path, value):
    """Write JSON with sorted keys through a temporary file and a rename."""
    with open(path + ".tmp", "w", encoding="utf-8", newline="\n") as stream:
        json.dump(value, stream, indent=1, sort_keys=True, ensure_ascii=False)
        stream.write("\n")
    os.replace(path + ".tmp", path)


def write_io(tf, module, rec, out, signature_defs, answers):
    """Write io/: the requests and the recorded tensors."""
    os.makedirs(os.path.join(out, "io"))
    entries = []
    for request in rec.requests:
        signature_def = signature_defs[frozenset(request.tags)][request.signature]
        flat = feeds(tf, signature_def, request.inputs)
        entry = {"id": request.id, "kind": "signature", "tags": list(request.tags), "signature": request.signature,
                 "inputs": request.id + ".in.npz", "outputs": request.id + ".out.npz"}
        if request.loaded_error is not None:
            entry.update(recorded_from="live", loaded_error=request.loaded_error)
        given = collections.OrderedDict((name, to_tensor(array, dtype)) for name, (_, array, dtype) in flat.items())
        tensors.save(os.path.join(out, "io", entry["inputs"]), given)
        tensors.save(os.path.join(out, "io", entry["outputs"]), answers[request.id])
        entries.append(entry)
    rtol, atol, reason = getattr(module, "TOLERANCE", (0.0, 0.0, "bit-exact"))
    write_json(os.path.join(out, "io", "io.json"), {
        "schema": 1, "stateful": getattr(module, "STATEFUL", False),
        "tolerance": {"rtol": rtol, "atol": atol, "reason": reason}, "requests": entries})


def write_provenance(tf, module, case, out):
    """Write provenance.json, last: it holds the hashes of everything else."""
    import google.protobuf

    lock = fixtures_v1.lock_file(module.RUNTIME)
    write_json(os.path.join(out, "provenance.json"), {
        "schema": 1, "case": case, "title": module.__doc__.strip().splitlines()[0],
        "clauses": list(module.CLAUSES), "features": list(module.FEATURES),
        "producer": {"name": "fixture", "versions": {
            "python": ".".join(map(str, sys.version_info[:3])), "tensorflow": tf.VERSION, "numpy": np.__version__,
            "protobuf": google.protobuf.__version__}},
        "generator": {"file": "generate.py", "sha256": fixtures_v1.sha256(module.__file__)},
        "environment": {"lock": "locks/" + os.path.basename(lock), "sha256": fixtures_v1.sha256(lock)},
        "command": "python -m fixtures_v1.recorder {} OUT".format(case), "licence": "Apache-2.0",
        "unasked": getattr(module, "UNASKED", {}),
        "files": {name: fixtures_v1.sha256(os.path.join(out, name)) for name in fixtures_v1.artifact_files(out)}})


def record(case, out):
    """Generate one case into the new folder ``out``. Raises AssertionError when live and loaded answers differ."""
    import tensorflow as tf

    module = importlib.import_module("fixtures_v1.{}.generate".format(case))
    os.makedirs(out)
    here, work = os.getcwd(), tempfile.mkdtemp()
    # Vocabularies are named by relative paths: TensorFlow writes them into shared names, and a fixture must not depend on
    # the machine that made it.
    os.chdir(work)
    try:
        rec = Recorder(tf, os.path.join(out, "first", "model"))
        module.generate(tf, rec)
        # From here on the export stands in another place than where it was written, and its sources are gone.
        model = os.path.join(out, "model")
        os.rename(rec.model, model)
        os.rmdir(os.path.dirname(rec.model))
        signature_defs = read_signature_defs(model)
        assert_all_asked(module, rec, signature_defs)
        answers = answer_live(tf, rec, signature_defs)
        os.chdir(here)
        shutil.rmtree(work)
        check_loaded(tf, rec, model, answers)
        write_io(tf, module, rec, out, signature_defs, answers)
        write_provenance(tf, module, case, out)
    finally:
        os.chdir(here)
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    np.random.seed(0)
    record(sys.argv[1], os.path.abspath(sys.argv[2]))
