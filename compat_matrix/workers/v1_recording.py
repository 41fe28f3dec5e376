"""Run a v1 generator and record what this TensorFlow answers: the part of a worker that makes v1
artifacts.

Python 3.6 syntax, TensorFlow 1.4 and newer. Every request is answered twice: by the live session
(or function) that was exported, and by the export loaded back with the v1 loader from another
folder after the scratch folder is gone. Both must agree bit for bit.

A generator is a module that defines ``generate(tf, rec)``; ``rec`` is the :class:`Recorder` below.
Its docstring's first line is the title, and it has the constants CLAUSES, FEATURES, RUNTIME (of the
committed fixture) and, where needed, TOLERANCE = (rtol, atol, reason), STATEFUL, UNASKED =
{signature: reason} and REQUIRES, a PEP 508 specifier on the TensorFlow that can run it. ``tf`` is
``tensorflow`` in TensorFlow 1.x, ``tensorflow.compat.v1`` afterwards.
"""

import collections
import os
import random
import re
import shutil
import uuid

import numpy as np

from savedmodel_common import tensors

from . import producing, warmup
from . import v1_answers as answers

# inputs: {key: value}; loaded_error: what the reloaded export says where only the live session
# answers.
Request = collections.namedtuple("Request", ["id", "tags", "signature", "inputs", "loaded_error"])
FunctionRequest = collections.namedtuple("FunctionRequest", ["id", "path", "args", "kwargs"])


class Recorder(object):
    """The tools of a generator: sessions, export, requests.

    The working directory is a scratch folder.
    """

    def __init__(self, tf, model):
        self.tf = tf
        self.model = model
        self.requests = []
        self.function_requests = []
        self.live_sources = {}  # {frozenset of tags: session, or {signature: callable}}
        self.live_object = None  # the object saved, for function requests
        self._builder = None

    # -- building
    # ----------------------------------------------------------------------------------------------

    def session(self, soft_placement=False, cpus=1):
        """A single-threaded session on the default graph: one order of summation, so one result."""
        config = self.tf.ConfigProto(
            intra_op_parallelism_threads=1,
            inter_op_parallelism_threads=1,
            allow_soft_placement=soft_placement,
            device_count={"CPU": cpus},
        )
        return self.tf.Session(config=config)

    def initialized_session(self, **kwargs):
        """A session in which all variables and tables of the default graph are initialised."""
        sess = self.session(**kwargs)
        sess.run([self.tf.global_variables_initializer(), self.tf.local_variables_initializer()])
        sess.run(self.tf.tables_initializer())
        return sess

    def v2(self):
        """The names of TensorFlow 2.x, from 1.14 on."""
        if hasattr(self.tf.compat, "v2"):
            return self.tf.compat.v2
        import tensorflow  # 2.0 has no compat.v1.compat.v2

        return tensorflow

    def file(self, name, text):
        """Write a text file into the scratch folder, which is the working directory; returns its
        relative path.
        """
        if os.path.dirname(name):
            os.makedirs(os.path.dirname(name))
        with open(name, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        return name

    def warmup(self, *records):
        """Write requests to warm up with (see :mod:`.warmup`) to a scratch file; returns keywords
        of an Estimator's export.
        """
        warmup.write(self.tf, warmup.FILE, records, "model")
        return {"assets_extra": {warmup.FILE: warmup.FILE}}

    def example(self, **features):
        """A serialized tf.Example; lists of float, int or bytes/str."""
        example = self.tf.train.Example()
        for name in sorted(features):
            kinds = {float: "float_list", int: "int64_list", str: "bytes_list", bytes: "bytes_list"}
            values = features[name]
            target = (
                getattr(example.features.feature[name], kinds[type(values[0])]) if values else None
            )
            if target is not None:
                target.value.extend(
                    value.encode("utf-8") if isinstance(value, str) else value for value in values
                )
        return example.SerializeToString(deterministic=True)

    @staticmethod
    def empty(*shape):
        """A request value without elements."""
        return np.zeros(shape, np.float32)

    @staticmethod
    def exact(*shape):
        """Numbers k/8 with small k: products and sums of a few of them are exact in float32, in
        whatever order.
        """
        count = int(np.prod(shape))
        return (((np.arange(count) * 7 + 3) % 17 - 8) / 8.0).reshape(shape).astype(np.float32)

    def signature(self, inputs, outputs, method="tensorflow/serving/predict"):
        """A SignatureDef from {key: tensor} maps."""
        info = self.tf.saved_model.utils.build_tensor_info
        return self.tf.saved_model.signature_def_utils.build_signature_def(
            {key: info(value) for key, value in inputs.items()},
            {key: info(value) for key, value in outputs.items()},
            method,
        )

    def add(self, sess, signatures, tags=("serve",), **kwargs):
        """Add a MetaGraph with SavedModelBuilder: the first one with the variables, further ones
        share them.
        """
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
        """Name the live answerer of a MetaGraph: a session on the exported graph, or {signature:
        callable(**inputs)}.
        """
        self.live_sources[frozenset(tags)] = source

    # -- asking
    # ----------------------------------------------------------------------------------------------

    def ask(self, signature, inputs, tags=("serve",), loaded_error=None):
        """Ask a signature; values are converted to the dtypes it states, sparse ones are (indices,
        values, dense_shape).

        With ``loaded_error`` the answer is recorded from the live session only, and the reloaded
        export must fail with that text.
        """
        name = (
            signature
            if tuple(tags) == ("serve",)
            else "{}.{}".format("+".join(tags) or "untagged", signature)
        )
        self.requests.append(
            Request(self._new_id(name), tuple(tags), signature, inputs, loaded_error)
        )

    def ask_function(self, path, *args, **kwargs):
        """Call a function of the object graph (docs/exporters/artifacts.md, section 3: arrays are
        tensors, Python values literals).
        """
        self.function_requests.append(FunctionRequest(self._new_id(path), path, args, kwargs))

    def _new_id(self, name):
        name = re.sub(r"[^A-Za-z0-9_.+-]", "_", name)
        taken = {request.id for request in self.requests + self.function_requests}
        numbered = ("{}-{}".format(name, count) for count in range(len(taken) + 1))
        return next(new for new in numbered if new not in taken)


# -- writing
# --------------------------------------------------------------------------------------------------


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
    return {
        frozenset(graph.meta_info_def.tags): dict(graph.signature_def)
        for graph in proto.meta_graphs
    }


def write_io(tf, module, rec, out, signature_defs, recorded, functions):
    """Write io/: the requests and the recorded tensors."""
    os.makedirs(os.path.join(out, "io"))
    entries = []

    def add(entry, given, result):
        entry.update(inputs=entry["id"] + ".in.npz", outputs=entry["id"] + ".out.npz")
        tensors.save(os.path.join(out, "io", entry["inputs"]), given)
        tensors.save(os.path.join(out, "io", entry["outputs"]), result)
        entries.append(entry)

    for request in rec.requests:
        entry = {
            "id": request.id,
            "kind": "signature",
            "tags": list(request.tags),
            "signature": request.signature,
        }
        if request.loaded_error is not None:
            entry.update(recorded_from="live", loaded_error=request.loaded_error)
        flat = answers.feeds(
            tf, signature_defs[frozenset(request.tags)][request.signature], request.inputs
        )
        given = collections.OrderedDict(
            (name, answers.to_tensor(array, dtype)) for name, (_, array, dtype) in flat.items()
        )
        add(entry, given, recorded[request.id])
    for request in rec.function_requests:
        given, members, result = functions[request.id]
        add(
            dict(members, id=request.id, kind="function", tags=["serve"], path=request.path),
            given,
            result,
        )
    producing.write_io_json(module, os.path.join(out, "io"), entries)


def seed(case):
    """Determined randomness: NumPy's, and the UUIDs which TensorFlow 1.x writes into savers and
    shared names.
    """
    source = random.Random(case)
    np.random.seed(source.randrange(2**32))
    uuid.uuid4 = lambda: uuid.UUID(int=source.getrandbits(128), version=4)


def record(tf, module, out, work):
    """Run a generator and write ``out``/model and ``out``/io.

    ``work`` is an existing folder that is filled and removed.

    Changes the state of this process (default graph, seeds, working directory while it runs).
    Raises :class:`~.v1_answers.Differs` when live and loaded answers differ, and what the generator
    and TensorFlow raise.
    """
    here = os.getcwd()
    # Vocabularies are named by relative paths: TensorFlow writes them into shared names, and an
    # artifact must not depend on the machine that made it.
    os.chdir(work)
    try:
        rec = Recorder(tf, os.path.join(out, "first", "model"))
        module.generate(tf, rec)
        # From here on the export stands in another place than where it was written, and its sources
        # are gone.
        model = os.path.join(out, "model")
        os.rename(rec.model, model)
        os.rmdir(os.path.dirname(rec.model))
        signature_defs = read_signature_defs(model)
        answers.assert_all_asked(module, rec, signature_defs)
        recorded = answers.answer_live(tf, rec, signature_defs)
        os.chdir(here)
        shutil.rmtree(work)
        answers.check_loaded(tf, rec, model, recorded)
        functions = answers.answer_functions(tf, rec, model)
        write_io(tf, module, rec, out, signature_defs, recorded, functions)
    finally:
        os.chdir(here)
        shutil.rmtree(work, ignore_errors=True)
