"""All that is asked of one real SavedModel: loaded, answered, saved again three times, read by the
shipped loaders.

    python tests/support/zoo_driver.py --out FILE [--only WORD] [MODEL...]   every model and tag
                                                                             set, a process each;
                                                                             JSON lines
    python tests/support/zoo_driver.py --one MODEL TAGS                        one, here; the line
                                                                               goes to standard
                                                                               output

What is already in FILE is not done again. A step is ``ok`` or says what was found.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

import fresh_tensorflow  # noqa: E402
import inventory  # noqa: E402
import zoo  # noqa: E402
import zoo_requests  # noqa: E402

from reference_impl.errors import SavedModelError  # noqa: E402
from reference_impl.format.container import layout  # noqa: E402
from savedmodel_tools.canonical.form import canonical  # noqa: E402
from savedmodel_tools.comparison import form_changes  # noqa: E402

# A session optimises the main graph, where an export of TF 2 has a call and one of TF 1.x all
# nodes: MatMul and what follows it are fused in one and not in the other, and rounded once instead
# of twice.
SESSION_ULPS = 4

ALONE = "nobody else answers: "

Answers = dict[str, Any]  # signature -> outputs by name, or the exception


class Skipped(Exception):
    """A step that has nothing to compare with; says why."""


class Check:
    """One model with one set of tags."""

    def __init__(self, model: Path, tags: tuple[str, ...], scratch: Path):
        self.model, self.tags, self.scratch = model, tags, scratch
        self.directory = layout.read(model)
        self.meta_graph = self.directory.meta_graph(tags)
        self.tf1 = not (
            self.meta_graph.HasField("object_graph_def")
            and len(self.directory.saved_model.meta_graphs) == 1
        )
        self.recorded = recorded(model, tags)
        self.shipped: dict[tuple[str, str], Any] = {}
        self.exports = [scratch / f"export{number}" for number in range(4)]

    def run(self) -> dict[str, str]:
        """Step -> "ok", "-: " and why there is nothing to do, or what is wrong; a step whose input
        failed is left out.
        """
        steps: dict[str, str] = {}

        def step(name: str, action: Callable[[], Optional[str]]) -> bool:
            begin = time.time()
            try:
                steps[name] = action() or "ok"
            except Skipped as error:
                steps[name] = f"-: {error}"
            except Exception as error:
                where = "".join(traceback.format_tb(error.__traceback__)[-3:])
                steps[name] = f"{type(error).__name__}: {str(error)[:1500]}\n{where}"
            seconds = time.time() - begin
            if seconds > 20:
                steps[name + "_s"] = f"{seconds:.0f}"
            return steps[name] == "ok"

        if not step("load", self.load):
            return steps
        step("answers", lambda: self.same_answers(self.ours))
        step("loaded", self.loaded_inventory)
        if not step("save", lambda: self.resave(self.model, self.exports[1])):
            return steps
        step(
            "inventory",
            lambda: inventory.compare(self.original(), inventory.of(self.exports[1]), self.tf1),
        )
        step("shipped_load", lambda: self.same_answers(lambda: self.as_original(self.ask_v2)))
        step(
            "shipped_session",
            lambda: self.same_answers(lambda: self.as_original(self.ask_v1), SESSION_ULPS),
        )
        step("tables", self.same_tables)
        step("part", lambda: self.same_answers(self.ask_part))
        if step("second", lambda: self.resave(self.exports[1], self.exports[2])):
            step(
                "second_answers", lambda: self.same_answers(lambda: self.ask_ours(self.exports[2]))
            )
            step(
                "inventory2",
                lambda: inventory.compare(
                    inventory.of(self.exports[1]), inventory.of(self.exports[2]), False
                ),
            )
            first = 1
            if self.tf1 and step("third", lambda: self.resave(self.exports[2], self.exports[3])):
                first = 2
            step("fixed", lambda: _different(self.exports[first], self.exports[first + 1]))
        return steps

    def original(self) -> dict[str, Any]:
        return inventory.of(self.model, self.tags)

    # Ours

    def load(self) -> None:
        import reference_impl

        self.root = reference_impl.load(self.model, self.tags)

    def resave(self, source: Path, target: Path, only: Optional[str] = None) -> None:
        import reference_impl
        from reference_impl import LoadOptions, SaveOptions

        root = reference_impl.load(
            source, self.tags if source == self.model else None, LoadOptions(only=only)
        )
        complete = all(asset.exists for asset in self.directory.assets(self.meta_graph))
        options = SaveOptions(
            extra_tags=self.tags, strict=complete
        )  # what the original lacks cannot be saved
        reference_impl.save(root, target, options=options)

    def loaded_inventory(self) -> Optional[str]:
        return inventory.compare_loaded(self.original(), self.root)

    def ours(self) -> Answers:
        return self.ask(self.root)

    def ask_ours(self, path: Path) -> Answers:
        import reference_impl

        return self.ask(reference_impl.load(path))

    def ask_part(self) -> Answers:
        """The signatures alone, loaded, saved and loaded again."""
        self.resave(self.model, self.scratch / "part", only="signatures")
        return self.ask_ours(self.scratch / "part")

    # The shipped loaders

    def ask_v2(self, path: Path) -> Answers:
        import tensorflow as tf

        return self.ask(tf.saved_model.load(str(path), self.tags if path == self.model else None))

    def ask_v1(self, path: Path) -> Answers:
        import tensorflow as tf

        answers: Answers = {}
        with tf.Graph().as_default(), inventory.session() as session:
            tags = list(self.tags) if path == self.model else sorted({"serve", *self.tags})
            meta_graph = tf.compat.v1.saved_model.load(session, tags, str(path))
            for key in zoo_requests.public(self.meta_graph):
                answers[key] = _attempt(
                    lambda key=key: self.run_v1(session, meta_graph.signature_def[key], key)
                )
        return answers

    def as_original(self, ask: Callable[[Path], Answers]) -> Answers:
        """Answers of what we saved.

        What a loader refuses there for the reason it refuses the original is not our doing.
        """
        try:
            return ask(self.exports[1])
        except Exception as error:
            try:
                ask(self.model)
            except Exception as before:
                if _reason(before) == _reason(error):
                    raise Skipped(f"the original fails too: {str(error)[:200]}") from None
            raise

    def run_v1(self, session: Any, signature: Any, key: str) -> dict[str, Any]:
        request = zoo_requests.request(self.meta_graph, key, self.attempt(key))
        feed, fetch = {}, {}
        for name, info in signature.inputs.items():
            if info.WhichOneof("encoding") == "coo_sparse":
                sparse = info.coo_sparse
                for suffix, tensor in (
                    ("indices", sparse.indices_tensor_name),
                    ("values", sparse.values_tensor_name),
                    ("dense_shape", sparse.dense_shape_tensor_name),
                ):
                    feed[tensor] = request[f"{name}_{suffix}"]
            else:
                feed[info.name] = request[name]
        for name, info in signature.outputs.items():
            if info.WhichOneof("encoding") == "coo_sparse":
                sparse = info.coo_sparse
                fetch[f"{name}/0"], fetch[f"{name}/1"] = (
                    sparse.indices_tensor_name,
                    sparse.values_tensor_name,
                )
                fetch[f"{name}/2"] = sparse.dense_shape_tensor_name
            else:
                fetch[name] = info.name
        found = session.run(fetch, feed)
        text = {
            name: session.graph.get_tensor_by_name(tensor).dtype.base_dtype.name == "string"
            for name, tensor in fetch.items()
        }
        return {
            name: np.array(value, object) if text[name] else np.asarray(value)
            for name, value in found.items()
        }

    # Answers

    def attempt(self, key: str) -> str:
        return self.recorded.get(key, {}).get("attempt") or "dims1"

    def ask(self, root: Any) -> Answers:
        return {
            key: _attempt(lambda key=key: self.call(root, key))
            for key in zoo_requests.public(self.meta_graph)
        }

    def call(self, root: Any, key: str) -> dict[str, Any]:
        import tensorflow as tf

        request = zoo_requests.request(self.meta_graph, key, self.attempt(key))
        function = root.signatures[key]
        kinds = {
            spec.name: spec.dtype
            for spec in tf.nest.flatten(function.structured_input_signature, expand_composites=True)
        }
        kinds.update(function.structured_input_signature[1])
        arguments = {
            name: tf.constant(value, getattr(kinds.get(name), "dtype", None))
            for name, value in request.items()
        }
        out: dict[str, Any] = {}
        for name, value in function(**arguments).items():
            parts = tf.nest.flatten(value, expand_composites=True)
            out.update(
                {
                    name if len(parts) == 1 else f"{name}/{n}": _array(part)
                    for n, part in enumerate(parts)
                }
            )
        return out

    def same_answers(self, ask: Callable[[], Answers], ulps: int = 0) -> Optional[str]:
        """Recorded answers; where there are none or another CPU gave them, what the shipped loaders
        answer here and now.
        """
        wrong, alone = [], []
        for key, answer in ask().items():
            text = self.judge(key, answer, ulps)
            if text is not None:
                (alone if text.startswith(ALONE) else wrong).append(f"{key}: {text}")
        if alone and not wrong:
            raise Skipped("; ".join(alone))
        return "; ".join(wrong) or None

    def judge(self, key: str, answer: Any, ulps: int) -> Optional[str]:
        known = self.recorded.get(key, {})
        if not isinstance(answer, Exception) and zoo_requests.digest(answer) in known.get(
            "digests", ()
        ):
            return None
        found, failures = [], 0
        for name, ask in (("v2", self.ask_v2), ("v1", self.ask_v1)):
            theirs = self.theirs(name, ask).get(key)
            if isinstance(theirs, Exception) and _is_named(answer, theirs):
                return None
            if isinstance(theirs, Exception) or theirs is None:
                failures += 1
                found.append(
                    f"{name} fails: {str(theirs)[:120]}, ours:"
                    f" {str(answer)[:200] if isinstance(answer, Exception) else 'ok'}"
                )
            elif (
                not known.get("deterministic", True)
                and not isinstance(answer, Exception)
                and sorted(theirs) == sorted(answer)
            ):
                return None
            else:
                text = (
                    str(answer)[:700]
                    if isinstance(answer, Exception)
                    else zoo_requests.differences(theirs, answer, ulps)
                )
                if text is None:
                    return None
                found.append(f"{name}: {text}")
        if failures == 2 and not isinstance(answer, Exception) and not known.get("digests"):
            return f"{ALONE}{', '.join(found)}"
        return ", ".join(found) + ("" if known.get("digests") else " (nothing recorded)")

    def theirs(self, name: str, ask: Callable[[Path], Answers]) -> Answers:
        if (name, "") not in self.shipped:
            try:
                self.shipped[name, ""] = ask(self.model)
            except Exception as error:
                self.shipped[name, ""] = dict.fromkeys(zoo_requests.public(self.meta_graph), error)
        return self.shipped[name, ""]  # type: ignore[no-any-return]

    # Tables

    def same_tables(self) -> Optional[str]:
        try:
            before = inventory.tables(self.model, list(self.tags))
        except Exception as error:
            raise Skipped(f"no session of the original: {str(error)[:100]}") from None
        return inventory.compare_tables(
            before, inventory.tables(self.exports[1], sorted({"serve", *self.tags}))
        )


def _different(one: Path, other: Path) -> Optional[str]:
    first, second = canonical(one), canonical(other)
    told = "; ".join(str(change) for change in form_changes(first, second) if change.counts)
    return None if first.hash == second.hash else told[:1200] or "another hash"


def _reason(error: Exception) -> tuple[type, str]:
    """What an error says without paths, numbers and names."""
    return type(error), re.sub(r"'[^']*'|\S*/\S*|\d+", "", str(error))[:60]


def _is_named(answer: Any, theirs: Exception) -> bool:
    """Is it an error that is meant to be one, or one like that of the shipped loader?"""
    import tensorflow as tf

    return isinstance(answer, (SavedModelError, tf.errors.OpError)) or (
        isinstance(answer, Exception) and type(answer) is type(theirs)
    )


def _attempt(action: Callable[[], Any]) -> Any:
    try:
        return action()
    except Exception as error:
        return error


def _array(tensor: Any) -> Any:
    value = tensor.numpy()
    return np.array(value, object) if tensor.dtype.name == "string" else np.asarray(value)


def recorded(model: Path, tags: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """What is recorded of a model's signatures beside the zoo: attempt, deterministic, digests."""
    out: dict[str, dict[str, Any]] = {}
    for file in sorted(model.parent.parent.glob("baseline_*_signatures.csv")):
        with file.open(newline="") as stream:
            for row in csv.DictReader(stream):
                if (
                    row["id"] == model.name
                    and row["tags"] == tag_text(tags)
                    and row["status"] in ("ok", "fail")
                ):
                    known = out.setdefault(
                        row["signature"],
                        {"attempt": row["attempt"], "deterministic": True, "digests": []},
                    )
                    known["deterministic"] &= row["deterministic"] != "False"
                    known["attempt"] = row["attempt"] or known["attempt"]
                    known["digests"] += [row["sha256"]] if row["sha256"] else []
    return out


def shipped_loads(model: Path, tags: str) -> bool:
    """Does a shipped loader load it? True where nothing is recorded."""
    rows = []
    for file in sorted(
        set(model.parent.parent.glob("baseline_*.csv"))
        - set(model.parent.parent.glob("*_signatures.csv"))
    ):
        with file.open(newline="") as stream:
            rows += [row for row in csv.DictReader(stream) if row["id"] == model.name]
    rows = [
        row for row in rows if row["tags"] == tags
    ] or rows  # the tags of what cannot be read are not known
    return not rows or any(
        "ok" in (row["v2_status"], row["tfkeras_status"], row["v1_status"]) for row in rows
    )


_NOT_LOADED = "the signature could not be loaded, so it cannot be saved"
_NAMED = (
    "MissingFileError",
    "MissingValueError",
    "SchemaVersionError",
)  # our errors for models that are incomplete


def unexpected(row: dict[str, Any], model: Path) -> dict[str, str]:
    """The steps of a result that should have been ok.

    Only what nobody loads may be refused, with an error that names why.
    """
    failed = {
        step: text
        for step, text in row["steps"].items()
        if text != "ok" and not text.startswith("-:")
    }
    failed = {step: text for step, text in failed.items() if not step.endswith("_s")}
    if not shipped_loads(model, row["tags"]):
        failed = {step: text for step, text in failed.items() if not _refused_by_name(step, text)}
    return failed


def _refused_by_name(step: str, text: str) -> bool:
    if step == "save":
        # A load goes on without a signature that cannot be made. A save does not.
        return text.startswith("SignatureError") and _NOT_LOADED in text
    return step in ("load", "read") and text.startswith(_NAMED)


def tag_text(tags: tuple[str, ...]) -> str:
    return "+".join(tags) or "<empty>"


def one(model: Path, tags: tuple[str, ...]) -> dict[str, Any]:
    begin = time.time()
    with tempfile.TemporaryDirectory(prefix="zoo-") as scratch:
        try:
            check = Check(model, tags, Path(scratch))
        except SavedModelError as error:
            steps = {"read": f"{type(error).__name__}: {error}"}
        else:
            steps = check.run()
    return {
        "id": model.name,
        "tags": tag_text(tags),
        "steps": steps,
        "seconds": round(time.time() - begin, 1),
    }


def model_tags(model: Path) -> list[tuple[str, ...]]:
    """The tag sets of a model in the order the zoo writes them; where that is not recorded,
    sorted.
    """
    try:
        return [
            tuple(graph.meta_info_def.tags) for graph in layout.read(model).saved_model.meta_graphs
        ]
    except SavedModelError:
        return [()]


def separately(model: Path, tags: tuple[str, ...]) -> dict[str, Any]:
    """The same in a process of its own: what crashes or hangs is a result."""
    begin = {"id": model.name, "tags": tag_text(tags)}
    done = fresh_tensorflow.run(Path(__file__), "--one", model, "+".join(tags))
    if done.returncode == -signal.SIGALRM:
        return {**begin, "steps": {"process": f"took more than {fresh_tensorflow.LIMIT} s"}}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"id"')]
    if not lines:
        return {
            **begin,
            "steps": {"process": f"ended with {done.returncode}: {done.stderr[-1500:]}"},
        }
    return json.loads(lines[-1])  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--one", nargs=2, metavar=("MODEL", "TAGS"))
    parser.add_argument("--out", type=Path)
    parser.add_argument("models", nargs="*", help="names of models; by default all")
    arguments = parser.parse_args()
    if arguments.one:
        path, tags = arguments.one
        print(json.dumps(one(Path(path), tuple(tags.split("+")) if tags else ())), flush=True)
        os._exit(0)  # a model's destructors may crash on the way out
    done = set()
    if arguments.out.exists():
        done = {
            (row["id"], row["tags"])
            for row in map(json.loads, arguments.out.read_text().splitlines())
        }
    for model in zoo.models():
        if arguments.models and model.name not in arguments.models:
            continue
        for tags in model_tags(model):
            if (model.name, tag_text(tags)) not in done:
                with arguments.out.open("a") as stream:
                    stream.write(json.dumps(separately(model, tags)) + "\n")


if __name__ == "__main__":
    main()
