"""SavedModels made by genuine TensorFlow 1.x, each with its requests, the recorded answers and its
provenance.

A case is a folder holding ``generate.py``, ``model/``, ``io/`` and ``provenance.json``
(docs/exporters/artifacts.md, section 1). This module needs nothing but the standard library and is
Python 3.6 syntax: the generators import it inside TensorFlow 1.x.
"""

import json
import os

ROOT = os.path.dirname(os.path.abspath(__file__))
# Signature keys that name operations to run at load time, not questions one can ask.
RESERVED_SIGNATURES = ("__saved_model_init_op", "__saved_model_train_op")


def cases():
    """Names of all committed cases, sorted."""
    return sorted(
        name for name in os.listdir(ROOT) if os.path.isfile(os.path.join(ROOT, name, "generate.py"))
    )


def case_dir(case):
    """Folder of a case."""
    return os.path.join(ROOT, case)


def lock_file(runtime):
    """Path of the lock of a runtime such as ``tf1.15``.

    Raises LookupError unless exactly one fits.
    """
    folder = os.path.join(ROOT, "locks")
    found = [
        name
        for name in sorted(os.listdir(folder))
        if name.startswith(runtime + ".") and name.endswith(".txt")
    ]
    if len(found) != 1:
        raise LookupError(
            "{} locks fit the runtime {}: {}".format(
                len(found), runtime, ", ".join(found) or "none"
            )
        )
    return os.path.join(folder, found[0])


def read_json(path):
    """Parse a UTF-8 JSON file."""
    with open(path, encoding="utf-8") as stream:
        return json.load(stream)


def verify(directory):
    """Compare a committed case with its provenance, without TensorFlow.

    Returns a list of problems, empty when all is well.

    Found are changed, missing and additional files of ``model/`` and ``io/``, and a generator or
    lock that was edited after the artifact was made.
    """
    directory = str(directory)
    try:
        provenance = read_json(os.path.join(directory, "provenance.json"))
        recorded = dict(provenance["files"])
        sources = [
            (
                os.path.join(directory, provenance["generator"]["file"]),
                provenance["generator"]["sha256"],
            )
        ]
        sources.append(
            (
                os.path.join(ROOT, provenance["environment"]["lock"]),
                provenance["environment"]["sha256"],
            )
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        return ["provenance.json: {}: {}".format(type(error).__name__, error)]
    return differing_files(directory, recorded) + edited(sources)


def differing_files(directory, recorded):
    """Problems with the files of ``model/`` and ``io/``: changed, missing or additional ones.

    ``recorded`` is ``{name: sha256}`` of a provenance.
    """
    # Late: where a matrix runs the generators, this package can be imported and compat_matrix
    # cannot.
    from savedmodel_common.provenance import hash_files

    present = hash_files(directory)
    problems = ["{}: missing".format(name) for name in sorted(set(recorded) - set(present))]
    problems += [
        "{}: not in provenance.json".format(name) for name in sorted(set(present) - set(recorded))
    ]
    differing = [
        name for name in sorted(present) if present[name] != recorded.get(name, present[name])
    ]
    return problems + ["{}: sha256 differs from provenance.json".format(name) for name in differing]


def edited(sources):
    """Problems with ``[(path, recorded sha256)]`` of what an artifact was made from."""
    from savedmodel_common.provenance import file_sha256

    problems = []
    for path, digest in sources:
        if not os.path.isfile(str(path)):
            problems.append("{}: missing".format(os.path.basename(str(path))))
        elif file_sha256(path) != digest:
            problems.append(
                "{}: changed since the artifact was made".format(os.path.basename(str(path)))
            )
    return problems
