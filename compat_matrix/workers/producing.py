"""A case becomes an artifact (docs/exporters/artifacts.md, sections 1 and 4): the part of a worker
that produces.

Python 3.6 syntax. The case's builder runs twice: the first object answers the requests, the second
is saved. So no answer can be spoilt by the save under test, an answer that changes state (a
counter) is not in the saved state, and a request leaves no trace behind in the export. A builder
therefore has to be deterministic.
"""

import collections
import collections.abc
import importlib.util
import json
import os
import re
import shutil
import sys
import tempfile

from savedmodel_common import tensors as tensor_file

from . import describing, nests, warmup

SERVING_TAG = "serve"
_RECORDED = ("functions", "variables")
MAX_SLUG = 60  # characters of a request's id, which becomes a file name


def load_case(case_file):
    """Execute a case file as a module of its own and return it."""
    name = "compat_matrix_case_" + os.path.splitext(os.path.basename(case_file))[0]
    spec = importlib.util.spec_from_file_location(name, case_file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # AutoGraph looks a function's module up by name
    spec.loader.exec_module(module)
    return module


def produce(case_file, directory, scratch, save, options=None, tf=None):
    """Write ``directory``/model and ``directory``/io for the case of a file; the rest as
    :func:`produce_case` has it.
    """
    produce_case(load_case(case_file), directory, scratch, save, options, tf)


def produce_case(case, directory, scratch, save, options=None, tf=None):
    """Write ``directory``/model and ``directory``/io for one case: a module, or what has the names
    of one.

    ``scratch`` is a folder this function may fill; what the builder writes there is deleted before
    returning, so that an export which still points at it is found out. Its paths are new every
    time, because TensorFlow names tables after their files and tables of one name are one table.
    ``save(root, path, signatures=..., options=...)`` is ``tf.saved_model.save`` or another
    implementation with its parameters; ``options(case)`` gives the options of another
    implementation, None where a case asks for none. ``tf`` is what the case is handed, TensorFlow
    itself by default. Errors of the builder, of the original's answers and of ``save`` are raised
    as they are.
    """
    if tf is None:
        import tensorflow as tf

    io_directory = os.path.join(directory, "io")
    os.makedirs(io_directory)
    asked = getattr(case, "SAVE_OPTIONS", None)
    folders = [tempfile.mkdtemp(prefix=case.__name__ + ".", dir=scratch) for _ in range(2)]
    original = _build(tf, case, folders[0])
    tags = list(getattr(case, "TAGS", [SERVING_TAG])) + list((asked or {}).get("extra_tags", ()))
    entries = _answer_requests(tf, case, original, tags, io_directory)
    root, signatures, _ = _build(tf, case, folders[1])
    keywords = {} if asked is None else {"options": tf.saved_model.SaveOptions(**asked)}
    own = options(case) if options is not None else None
    if own is not None:
        keywords = {"options": own}
    model = os.path.join(directory, "model")
    save(root, model, signatures=signatures, **keywords)
    _finish(tf, case, model)
    # Of the object that was saved, in the state it was saved in; the other one has answered
    # requests.
    objects = describe(tf, root, model, tags)
    if objects is not None:
        _record_gradients(tf, root, model, tags, entries, io_directory)
    for folder in folders:
        shutil.rmtree(folder)
    write_io_json(case, io_directory, entries, objects)


def describe(tf, root, model, tags):
    """Describe the saved object (:mod:`.describing`) for io.json; None where the file cannot be
    walked (no such MetaGraph).
    """
    described = describing.describe(tf, root, model, tags)
    if described["naming"] != "path":
        return None
    return {kind: described[kind] for kind in _RECORDED}


def _record_gradients(tf, root, model, tags, entries, directory):
    """Add ``gradients``, the name of a tensor file, to each answered function request that can be
    differentiated.
    """
    for entry in entries:
        if entry["kind"] == "function" and entry["outputs"] is not None:
            given = tensor_file.load(os.path.join(directory, entry["inputs"]))
            call = entry["path"], entry["args"], entry["kwargs"]
            try:
                found = describing.gradients(
                    tf, root, call[0], call[1], call[2], given, model, tags
                )
            except (LookupError, TypeError, ValueError, NotImplementedError, tf.errors.OpError):
                continue  # the original has no gradient either: there is nothing to lose
            if found:
                entry["gradients"] = entry["id"] + ".grad.npz"
                tensor_file.save(os.path.join(directory, entry["gradients"]), found)


def _finish(tf, case, model):
    """Apply a case's changes to its SavedModel after the save, as its author would by hand: edits,
    then warm-up requests.
    """
    if hasattr(case, "after_save"):
        case.after_save(tf, model)
    if hasattr(case, "warmup"):
        import numpy as np

        name = os.path.splitext(os.path.basename(case.__file__))[0]
        warmup.put(tf, model, case.warmup(np), name)


def write_io_json(case, directory, entries, objects=None):
    """Write ``directory``/io.json from the constants of a case (or v1 generator) and the entries of
    its requests.

    ``objects`` is what the original's variables and functions are (:func:`describe`), where the
    producer can tell.
    """
    rtol, atol, reason = getattr(case, "TOLERANCE", (0.0, 0.0, "bit-exact"))
    content = {
        "schema": 1,
        "stateful": getattr(case, "STATEFUL", False),
        "tolerance": {"rtol": rtol, "atol": atol, "reason": reason},
        "requests": entries,
    }
    if objects is not None:
        content["objects"] = objects
    _write_json(os.path.join(directory, "io.json"), content)


def _build(tf, case, work):
    """``(root, signatures, answerers)`` of a fresh build."""
    built = case.build(tf, work)
    if not isinstance(built, tuple):
        built = (built,)
    root, signatures, answerers = built + (None,) * (3 - len(built))
    return root, signatures, answerers or {}


def _answer_requests(tf, case, built, tags, io_directory):
    import numpy as np

    root, signatures, answerers = built
    if signatures is not None and not isinstance(signatures, collections.abc.Mapping):
        signatures = {tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY: signatures}
    functions = dict(signatures or {})
    functions.update(answerers)
    unanswered, refused = getattr(case, "UNANSWERED", ()), getattr(case, "REFUSED", {})
    entries, requests = [], case.requests(np)
    identifiers = _request_ids([request[0] for request in requests])
    unknown = sorted(set(refused) - set(identifiers))
    if unknown:
        raise RuntimeError(
            "REFUSED names {!r}; the requests are {}".format(unknown[0], ", ".join(identifiers))
        )
    for identifier, request in zip(identifiers, requests):
        name = request[0]
        if len(request) == 2:
            entry, given, answer = _signature_request(tf, functions, request)
        else:
            entry, given, answer = _function_request(tf, root, request)
        entry.update(id=identifier, tags=tags, inputs=identifier + ".in.npz", outputs=None)
        tensor_file.save(os.path.join(io_directory, entry["inputs"]), given)
        if identifier in refused:
            entry.update(error=_checked_error(identifier, answer, refused[identifier]))
        elif name not in unanswered:
            recorded, more = answer()
            entry.update(more, outputs=identifier + ".out.npz")
            tensor_file.save(os.path.join(io_directory, entry["outputs"]), recorded)
        entries.append(entry)
    return entries


def _request_ids(names):
    """The ids of requests, in order: the name of each signature or path, shortened for files, and a
    number for each name.
    """
    out, used = [], collections.Counter()
    for name in names:
        slug = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[-MAX_SLUG:]
        out.append("{}-{}".format(slug, used[slug]))
        used[slug] += 1
    return out


def _checked_error(identifier, answer, text):
    """``text``, which the original's error must contain.

    RuntimeError if it says something else or answers.
    """
    try:
        answer()
    except Exception as error:
        if text in str(error):
            return text
        raise RuntimeError(
            "{}: the original fails otherwise than REFUSED says ({!r}): {}".format(
                identifier, text, error
            )
        )
    raise RuntimeError(
        "{}: the original answers what it must refuse ({!r})".format(identifier, text)
    )


def _signature_request(tf, functions, request):
    key, inputs = request
    given = collections.OrderedDict()
    for name in sorted(inputs):
        part = {}
        nest = nests.encode(tf, inputs[name], part, "x")
        if not (isinstance(nest, dict) and "$tensor" in nest):
            raise TypeError("input {!r} of signature {!r} is not a tensor".format(name, key))
        (given[name],) = part.values()

    def answer():
        value = functions[key](**{name: nests.to_tf(tf, tensor) for name, tensor in given.items()})
        recorded = collections.OrderedDict()
        for name, part in named_outputs(value):
            recorded.update(nests.flatten_output(tf, name, part))
        return recorded, {}

    return {"kind": "signature", "signature": key}, given, answer


def named_outputs(value):
    """Pair the result of a signature function with output names: dict keys, field names, else
    output_0, output_1, ...
    """
    if isinstance(value, collections.abc.Mapping):
        return sorted(value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return list(zip(value._fields, value))
    if isinstance(value, (list, tuple)):
        return [("output_{}".format(i), item) for i, item in enumerate(value)]
    return [] if value is None else [("output_0", value)]


def _function_request(tf, root, request):
    path, args, kwargs = request
    given = collections.OrderedDict()
    entry = dict(
        nests.encode_call(tf, args, kwargs, given), kind="function", path=path, structure=None
    )

    def answer():
        structure, recorded = nests.call_function(
            tf, root, path, entry["args"], entry["kwargs"], given
        )
        return recorded, {"structure": structure}

    return entry, given, answer


def _write_json(path, value):
    temporary = "{}.{}.tmp".format(path, os.getpid())
    with open(temporary, "w", encoding="utf-8") as stream:
        json.dump(value, stream, indent=1, sort_keys=True, allow_nan=False)
        stream.write("\n")
    os.replace(temporary, path)
