"""SavedModels made by genuine TensorFlow 1.x, each with its requests, the recorded answers and its provenance.

A case is a folder holding ``generate.py``, ``model/``, ``io/`` and ``provenance.json`` (docs/contracts.md, section 1).
This module needs nothing but the standard library and is Python 3.6 syntax: the generators import it inside TensorFlow 1.x.
"""

import hashlib
import json
import os

ROOT = os.path.dirname(os.path.abspath(__file__))
# Signature keys that name operations to run at load time, not questions one can ask.
RESERVED_SIGNATURES = ("__saved_model_init_op", "__saved_model_train_op")


def cases():
    """Names of all committed cases, sorted."""
    return sorted(name for name in os.listdir(ROOT) if os.path.isfile(os.path.join(ROOT, name, "generate.py")))


def case_dir(case):
    """Folder of a case."""
    return os.path.join(ROOT, case)


def lock_file(runtime):
    """Path of the lock of a runtime such as ``tf1.15``. Raises LookupError unless exactly one fits."""
    folder = os.path.join(ROOT, "locks")
    found = [name for name in sorted(os.listdir(folder)) if name.startswith(runtime + ".") and name.endswith(".txt")]
    if len(found) != 1:
        raise LookupError("{} locks fit the runtime {}: {}".format(len(found), runtime, ", ".join(found) or "none"))
    return os.path.join(folder, found[0])


def sha256(path):
    """Hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        for block in iter(lambda: stream.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def artifact_files(directory):
    """Files in ``model/`` and ``io/`` of an artifact, as sorted ``/``-separated paths relative to it."""
    found = []
    for part in ("model", "io"):
        for folder, _, names in os.walk(os.path.join(directory, part)):
            found += [os.path.relpath(os.path.join(folder, name), directory).replace(os.sep, "/") for name in names]
    return sorted(found)


def read_json(path):
    """Parse a UTF-8 JSON file."""
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def verify(directory):
    """Compare a committed case with its provenance, without TensorFlow. Returns a list of problems, empty when all is well.

    Found are changed, missing and additional files of ``model/`` and ``io/``, and a generator or lock that was edited
    after the artifact was made.
    """
    directory = str(directory)
    try:
        provenance = read_json(os.path.join(directory, "provenance.json"))
        recorded = dict(provenance["files"])
        sources = [(os.path.join(directory, provenance["generator"]["file"]), provenance["generator"]["sha256"])]
        sources.append((os.path.join(ROOT, provenance["environment"]["lock"]), provenance["environment"]["sha256"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        return ["provenance.json: {}: {}".format(type(error).__name__, error)]
    present = artifact_files(directory)
    problems = ["{}: missing".format(name) for name in sorted(set(recorded) - set(present))]
    problems += ["{}: not in provenance.json".format(name) for name in sorted(set(present) - set(recorded))]
    for name in present:
        if name in recorded and sha256(os.path.join(directory, name)) != recorded[name]:
            problems.append("{}: sha256 differs from provenance.json".format(name))
    for path, digest in sources:
        if not os.path.isfile(path):
            problems.append("{}: missing".format(os.path.basename(path)))
        elif sha256(path) != digest:
            problems.append("{}: changed since the artifact was made".format(os.path.basename(path)))
    return problems
