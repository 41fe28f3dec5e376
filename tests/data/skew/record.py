"""Provoke every kind of version skew in genuine runtimes and write down what they say:
``messages.jsonl``.

    python tests/data/skew/record.py FOLDER tf1.4 tf1.15 tf2.21 ... [MODEL ...]

Run at the root of the project, with TensorFlow 2.21 beside it (the models ``real_*`` are made by
it) and the named runtimes installed. FOLDER is for models and logs. What the file says of other
runtimes (and of other models, when some are named) stays.
"""

import importlib.util
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

import skew_models  # noqa: E402

from compat_matrix.hosts.host import Host  # noqa: E402
from compat_matrix.runtimes.resolve import resolve  # noqa: E402
from compat_matrix.runtimes.worker import NotStarted, ReplyError, WorkerDied  # noqa: E402
from compat_matrix.workers import tensors  # noqa: E402
from reference_impl.format.container import layout  # noqa: E402
from reference_impl.format.values.dtypes import by_name  # noqa: E402

FIXTURES = (
    "contrib_op",
    "contrib_renamed_op",
    "dtypes_reference",
    "dtypes_removed_kernels",
    "estimator_boosted_trees",
    "module_functions",
)
CASES = ("op_stateless_random", "op_xla_call_module", "var_float8", "var_int4")
CONSUMERS = {
    "tf2": "tf2_worker",
    "v1_session": "v1_session_worker",
    "c_api": "c_api_worker",
    "reference": "reference_worker",
}
LIMIT = 120.0


def real_models(folder):
    """Models by the TensorFlow beside this program; only their ``saved_model.pb`` is committed."""
    import tensorflow as tf

    root = tf.Module()
    root.v, root.child = tf.Variable([1.0, 2.0]), tf.Module()
    spec = [tf.TensorSpec([2])]
    root.child.helper = tf.function(lambda x: x * root.v, input_signature=spec, autograph=False)
    root.f = tf.function(
        lambda x: {"y": root.child.helper(x)}, input_signature=spec, autograph=False
    )
    tf.saved_model.save(root, str(folder / "real_variable"), signatures=root.f)
    for name in CASES:
        found = importlib.util.spec_from_file_location(
            name, ROOT / "compat_matrix" / "cases" / f"{name}.py"
        )
        case = importlib.util.module_from_spec(found)
        found.loader.exec_module(case)
        built = case.build(tf, tempfile.mkdtemp())
        root, signatures = (*built, None)[:2] if isinstance(built, tuple) else (built, None)
        tf.saved_model.save(root, str(folder / f"real_{name}"), signatures=signatures)


def zeros(argument):
    shape = [size if size and size > 0 else 2 for size in argument.get("shape") or []]
    if argument["dtype"] == "string":
        return tensors.Tensor("string", np.full(shape, b"", dtype=object))
    return tensors.Tensor(
        argument["dtype"], np.zeros(shape, by_name(argument["dtype"]).carrier or "u1")
    )


def plain(message):
    """Without what is of this machine, and without the long lists in it."""
    message = re.sub(r'\n *File "[^\n]*(\n {4,}[^\n]*)?', "", message)
    message = re.sub(r"(?<![\w<])/?(?:[\w.@+-]+/)+[\w.@+-]+\.(?:pb|py)\b", "<path>", message)
    message = re.sub(r"(in binary running on )\S+?(\.? )", r"\1<host>\2", message)
    message = re.sub(r"(\n\s+device='[^\n]*)(\n\s+device='[^\n]*)+", r"\1", message)
    return message if len(message) <= 2400 else message[:1200] + " ... " + message[-1200:]


def ask(worker, model, io):
    """(step, error class, message or None) of loading a model and of calling each of its
    signatures.
    """
    tags = sorted(layout.read(model).tag_sets[0])
    try:
        handle = worker.request("load", LIMIT, dir=str(model), tags=tags, timeout=LIMIT)["handle"]
        signatures = worker.request("signatures", LIMIT, handle=handle)["signatures"]
    except (ReplyError, WorkerDied) as error:
        yield "load", error.error_class, str(error)
        return
    yield "load", None, None
    for key, signature in sorted(signatures.items()):
        request = {
            "id": "a",
            "kind": "signature",
            "tags": tags,
            "signature": key,
            "inputs": "in.npz",
        }
        try:
            tensors.save(
                io / "in.npz",
                {name: zeros(argument) for name, argument in signature["inputs"].items()},
            )
            worker.request(
                "call",
                LIMIT,
                handle=handle,
                request=request,
                io_dir=str(io),
                outputs=str(io / "out.npz"),
            )
            yield f"signature {key}", None, None
        except (ReplyError, WorkerDied) as error:
            yield f"signature {key}", error.error_class, str(error)
    if worker.alive:
        worker.request("close", LIMIT, handle=handle)


def record(folder, spec, models):
    """Every row of a runtime: (version, consumer, model, step, error class, message)."""
    runtime = resolve(spec)
    io = folder / "io"
    io.mkdir(exist_ok=True)
    with Host(folder / "logs" / spec, {runtime.name: runtime}) as host:
        for consumer, program in CONSUMERS.items():
            if consumer in runtime.lacks or (
                consumer == "tf2" and runtime.tensorflow_version < "2"
            ):
                continue
            worker = host.worker(runtime.name, program)
            try:
                worker.hello()
            except NotStarted as error:
                print(spec, consumer, error)
                continue
            for model in models:
                for step, error_class, message in ask(worker, model, io):
                    text = None if message is None else plain(message)
                    yield runtime.tensorflow_version, consumer, model.name, step, error_class, text


def write(rows):
    """Rows of equal words are one line; the versions stand at its end."""
    together = {}
    for version, *words in rows:
        together.setdefault(tuple(words), []).append(version)
    lines = [json.dumps([*words, versions]) for words, versions in together.items()]
    (HERE / "messages.jsonl").write_text("\n".join(sorted(lines)) + "\n")


def read():
    """The rows that the file holds."""
    path = HERE / "messages.jsonl"
    for line in path.read_text().splitlines() if path.exists() else ():
        *words, versions = json.loads(line)
        yield from ((version, *words) for version in versions)


def order(row):
    return [int(part) for part in re.findall(r"\d+", row[0])], row[1:4]


def main(folder, *words):
    folder = Path(folder).absolute()
    models = folder / "models"
    if not models.exists():
        real_models(models)
        for name in FIXTURES:
            shutil.copytree(skew_models.fixture(name), models / f"fixture_{name}")
        for made in models.glob("real_*"):
            shutil.copyfile(made / "saved_model.pb", HERE / f"{made.name}.pb")
    for name in [*skew_models.MODELS, "newer_checkpoint"]:
        skew_models.made(name, models)
    known = sorted(models.iterdir())
    chosen = [model for model in known if model.name in words] or known
    for spec in words:
        if (models / spec).exists():
            continue
        new = list(record(folder, spec, chosen))
        print(spec, len(new), "rows", flush=True)
        replaced = {(row[0], row[2]) for row in new}
        write(
            sorted([*(row for row in read() if (row[0], row[2]) not in replaced), *new], key=order)
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
