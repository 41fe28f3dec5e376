"""Checks of the answers: good and bad models, signatures, right and wrong calls, tensors, claimed
capabilities.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from compat_matrix.cells.consumers import THREADS
from compat_matrix.checks import oracle
from compat_matrix.checks.kinds.checkpoint import compare_held
from compat_matrix.checks.kinds.signatures import compare_signatures
from compat_matrix.hosts.host import stamp
from savedmodel_common import tensors
from savedmodel_common.tensors import Tensor
from savedmodel_plugin_kit import explain, models
from savedmodel_plugin_kit.exam import (
    TAGS,
    Exam,
    NotAsked,
    X,
    call_recorded,
    requests_of,
    unsupported,
)
from savedmodel_plugin_kit.session import Mistake


def missing_model(exam: Exam) -> None:
    """A directory that is missing, empty, or holds noise or half a file."""
    for how in ("absent", "empty", "noise", "torn"):
        directory = models.damaged(exam.new(how), how)
        reply = exam.session.say("load", dir=str(directory), tags=TAGS, timeout=exam.session.limit)
        exam.refusal(f"load of a model that is {how}", reply)
    lost = exam.new("lost")
    shutil.copytree(models.half_plus_two() / "model", lost)
    for part in (lost / "variables").iterdir():
        part.unlink()
    reply = exam.session.say("load", dir=str(lost), tags=TAGS, timeout=exam.session.limit)
    if reply["status"] == "ok":  # it may read the variables only when they are needed
        request = requests_of(models.half_plus_two())[0]
        inputs = tensors.load(models.half_plus_two() / "io" / request["inputs"])
        exam.refusal(
            "a call of a model whose variables are lost",
            exam.call(reply["handle"], request["signature"], inputs)[0],
        )


def wrong_tags(exam: Exam) -> None:
    """A set of tags that no MetaGraph has."""
    if "tags" not in exam.session.capabilities:
        raise NotAsked("it does not claim the capability tags")
    model = models.half_plus_two() / "model"
    reply = exam.session.say(
        "load", dir=str(model), tags=["no", "such"], timeout=exam.session.limit
    )
    exam.refusal("load with the tags ['no', 'such'], which the model has not,", reply)


def signatures(exam: Exam) -> None:
    """The keys, names, dtypes and shapes of a model with four signatures, or of another."""
    handle, model = exam.load_any()
    got = exam.session.ok("signatures", handle=handle)["signatures"]
    expected = oracle.signatures(model.directory, TAGS)
    try:
        differences = compare_signatures(expected, got)
    except (AttributeError, KeyError, TypeError) as error:
        raise Mistake(
            "signatures is not {key: {inputs: {name: {dtype, shape}}, outputs: ...}}:"
            f" {error!r}"
        ) from error
    if differences:
        raise Mistake("; ".join(differences[:4]))


def half_plus_two(exam: Exam) -> None:
    """The answers of a model with two variables, as TensorFlow 1.15 recorded them."""
    artifact = models.half_plus_two()
    handle, io = exam.load(artifact / "model"), artifact / "io"
    for request in requests_of(artifact):
        call_recorded(exam, handle, request, io)
    exam.answered.add("half_plus_two")


def signature_key(exam: Exam) -> None:
    """Two signatures with the same inputs and outputs; two inputs whose outputs are swapped."""
    handle = exam.load(models.signs(exam.new("signs")))
    negative = Tensor("float32", -X.array)
    exam.answer(
        handle,
        "same",
        {"x": X},
        {"y": X},
        {"the signature 'negative': the key in the request is ignored": negative},
    )
    exam.answer(
        handle,
        "negative",
        {"x": X},
        {"y": negative},
        {"the signature 'same': the key in the request is ignored": X},
    )
    a, b = (
        Tensor("float32", np.array([[1, 2], [3, 4]], np.float32)),
        Tensor("int32", np.array([7], np.int32)),
    )
    exam.answer(handle, "crossed", {"a": a, "b": b}, {"a": b, "b": a})
    exam.answer(handle, "crossed", {"b": b, "a": a}, {"a": b, "b": a})
    exam.answered.add("signs")


def no_state(exam: Exam) -> None:
    """The same request again after others; a remembered answer does not count."""
    handle, model = exam.load_any()
    key, inputs, wanted = model.signature, model.inputs, model.wanted
    other_inputs = {
        name: Tensor(t.dtype, t.array[::-1].copy() if t.array.ndim else t.array)
        for name, t in inputs.items()
    }
    other = {
        name: Tensor(t.dtype, t.array[::-1].copy() if t.array.ndim else t.array)
        for name, t in wanted.items()
    }
    before = {
        "the request before: it keeps something between requests": next(iter(wanted.values()))
    }
    after = {"a request before: it keeps something between requests": next(iter(other.values()))}
    for given, expected, others in (
        (inputs, wanted, after),
        (other_inputs, other, before),
        (inputs, wanted, after),
    ):
        try:
            exam.answer(handle, key, given, expected, others)
        except Mistake as error:
            raise Mistake(
                str(error), "P-13" if "between requests" in str(error) else error.rule
            ) from None
    exam.answered.add("the same again")


def wrong_records(exam: Exam) -> None:
    """A model with deliberately wrong recorded answers, in io_dir and where an artifact has
    them.
    """
    for model in exam.candidates():
        artifact = exam.new("wrong")
        shutil.copytree(model.directory, artifact / "model")
        wrong = {
            name: Tensor(one.dtype, one.array + one.array.dtype.type(1))
            for name, one in model.wanted.items()
        }
        recorded = {"outputs": models.written(artifact / "io", wrong)}
        others = {
            "the answer that is recorded, which is wrong on purpose: this was not computed": next(
                iter(wrong.values())
            )
        }
        try:
            handle = exam.load(artifact / "model")
            exam.answer(
                handle,
                model.signature,
                model.inputs,
                model.wanted,
                others,
                io=artifact / "io",
                recorded=recorded,
            )
        except NotAsked:
            continue
        except Mistake as error:
            raise Mistake(
                str(error), "P-22" if "on purpose" in str(error) else error.rule
            ) from None
        return
    raise NotAsked("it understands none of the models of this check")


def many_models(exam: Exam) -> None:
    """Two models at the same time, each with its handle; one is closed, the other stays usable."""
    handles, asked = [], list(exam.candidates())
    for model in [*asked, *asked]:
        try:
            handles.append(exam.load(model.directory))
        except NotAsked:
            continue
    if len(handles) < 2:
        raise NotAsked("it understands none of the models of this check")
    if len(set(handles)) < len(handles):
        raise Mistake(f"loaded models share a handle: {handles}")
    exam.session.ok("close", handle=handles[0])
    reply = exam.session.say("signatures", handle=handles[-1])
    if reply["status"] != "ok":
        raise Mistake(
            f"after another model was closed this one is gone: {reply['message']}", "P-14"
        )


def close(exam: Exam) -> None:
    """A closed handle, and a handle that never existed."""
    handle, model = exam.load_any()
    exam.session.ok("close", handle=handle)
    for what, number in (
        ("a handle that is closed", handle),
        ("a handle that was never given", handle + 12345),
    ):
        exam.refusal(f"a call with {what}", exam.call(number, model.signature, model.inputs)[0])
        exam.refusal(f"close of {what}", exam.session.say("close", handle=number))


def wrong_signature(exam: Exam) -> None:
    """A key that the model lacks."""
    handle, model = exam.load_any()
    reply, _ = exam.call(handle, "no_such_key", model.inputs)
    exam.refusal("a call of the signature 'no_such_key', which the model has not,", reply)


def wrong_inputs(exam: Exam) -> None:
    """A missing input, an extra input, an input of another dtype.

    An input of another shape may be answered or refused.
    """
    handle, model = exam.load_any()
    key, inputs, wanted = model.signature, model.inputs, model.wanted
    name = next(iter(inputs))
    exam.answer(handle, key, inputs, wanted)  # remembered inputs must not replace a missing input
    exam.refusal(f"a call without the input {name!r}", exam.call(handle, key, {})[0])
    exam.refusal(
        "a call with the further input 'zzz'", exam.call(handle, key, {**inputs, "zzz": X})[0]
    )
    other = Tensor("int64", np.array([1, 2, 5], np.int64)) if inputs[name].dtype != "int64" else X
    reply, _ = exam.call(handle, key, {name: other})
    exam.refusal(
        f"a call with input {name!r} of {other.dtype}, which is {inputs[name].dtype} in the"
        " signature,",
        reply,
    )
    exam.answer(handle, key, inputs, wanted)
    if key != "same":
        return
    reply, outputs = exam.call(handle, "fixed", {"x": X})  # [3], where the signature says [2, 3]
    if reply["status"] == "ok":
        got, why = explain.read(outputs)
        why = why or explain.outputs({"y": X}, got)
        if why:
            raise Mistake(
                "an input of shape [3] where the signature says [2, 3]: neither an error nor its"
                f" answer: {why}"
            )
        exam.notes.append("shapes of inputs are not compared with the signature's")


def dtypes(exam: Exam) -> None:
    """Every dtype: any shape, none, empty, the ends of its range, NaN payloads, -0.0, strings of
    all bytes.
    """
    claimed, kept, refused, changed = exam.session.hello.get("dtypes"), [], {}, []
    for dtype in models.ASKED_DTYPES:
        try:
            handle = exam.load(models.echo(exam.new("echo"), dtype))
            first = next(models.tensors_of(dtype))[1]
            reply, outputs = exam.call(handle, "serving_default", {"x": first})
            if reply["status"] != "ok":
                raise NotAsked(f"{reply['status']}: {reply['message'].splitlines()[0][:120]}")
        except NotAsked as why:
            refused[dtype] = str(why)
            continue
        given = explain.read(outputs)[0].get("y")
        if (
            claimed is not None
            and dtype not in claimed
            and given is not None
            and given.dtype != dtype
        ):
            changed.append(f"{dtype} ({given.dtype})")
            continue
        for what, tensor in models.tensors_of(dtype):
            try:
                exam.answer(handle, "serving_default", {"x": tensor}, {"y": tensor})
            except Mistake as error:
                raise Mistake(f"{dtype}, {what}: {error}", error.rule) from None
        exam.session.ok("close", handle=handle)
        kept.append(dtype)
    if not kept:
        raise NotAsked(f"it answers no echo: {next(iter(refused.values()))}")
    lacking = [dtype for dtype in claimed or () if dtype in refused]
    if lacking:
        raise Mistake(
            f"hello claims the dtype {lacking[0]}, and a model of it is not answered:"
            f" {refused[lacking[0]]}",
            "P-15",
        )
    exam.answered.add("echo")
    exam.notes.append(f"{len(kept)} dtypes kept bit for bit: {', '.join(kept)}")
    if changed:
        exam.notes.append(f"not promised, and answered in another dtype: {', '.join(changed)}")
    if refused:
        exam.notes.append(f"not answered: {', '.join(refused)}")


def untouched(exam: Exam) -> None:
    """A model is read, not written."""
    handle, model = exam.load_any()
    exam.session.ok("close", handle=handle)
    directory = shutil.copytree(model.directory, exam.new("kept"))
    before, handle = stamp(directory), exam.load(directory)
    reply, outputs = exam.call(handle, model.signature, model.inputs)
    exam.session.say("close", handle=handle)
    if stamp(directory) != before:
        raise Mistake("it has changed files of the model")
    left = [
        p.name for p in outputs.parent.iterdir() if p.name.startswith(outputs.name) and p != outputs
    ]
    if left and reply["status"] == "ok":
        raise Mistake(f"it left {', '.join(left)} beside the file of the outputs")


def functions(exam: Exam) -> None:
    """Calls on the object graph, or the reply `unsupported`."""
    artifact = models.functions()
    requests = requests_of(artifact, "function")
    if "functions" not in exam.session.capabilities:
        handle, model = exam.load_any()
        io = exam.folder / "io"
        asked = {**requests[0], "inputs": models.written(io, model.inputs)}
        outputs = str(exam.new("answer").with_suffix(".npz"))
        unsupported(
            exam.session.say("call", handle=handle, request=asked, io_dir=str(io), outputs=outputs),
            "functions",
            "call",
        )
        return
    handle = exam.load(artifact / "model")
    for request in requests[:4]:
        call_recorded(exam, handle, request, artifact / "io")


def threads(exam: Exam) -> None:
    """One call from four threads at once, or the reply `unsupported`."""
    handle, model = exam.load_any()
    files = [exam.new("thread").with_suffix(".npz") for _ in range(4)]
    reply = exam.call(
        handle, model.signature, model.inputs, op="call_in_threads", outputs=list(map(str, files))
    )[0]
    if THREADS not in exam.session.capabilities:
        unsupported(reply, THREADS, "call_in_threads")
        return
    if reply["status"] != "ok":
        raise Mistake(
            f"four calls at once: {reply['status']}: {reply['error_class']}: {reply['message']}"
        )
    for number, file in enumerate(files, 1):
        got, why = explain.read(file)
        if why := why or explain.outputs(model.wanted, got):
            raise Mistake(f"in thread {number} of {len(files)}: {why}", "P-11")


def _load_stateful(exam: Exam) -> tuple[int, Path]:
    """A model with variables, and its artifact: with resource variables, since TF 2.x loses
    reference variables (V1-17).
    """
    artifact = models.functions()
    try:
        return exam.load(artifact / "model"), artifact
    except NotAsked:
        return exam.load(models.half_plus_two() / "model"), models.half_plus_two()


def variables(exam: Exam) -> None:
    """The values of the variables, as in the checkpoint, or the reply `unsupported`."""
    _held(exam, "variables")


def fetch(exam: Exam) -> None:
    """Tensors of the main graph, or the reply `unsupported`."""
    _held(exam, "fetch")


def _held(exam: Exam, op: str) -> None:
    outputs = exam.new("held").with_suffix(".npz")
    if op not in exam.session.capabilities:
        handle = exam.load_any()[0]
        more: dict[str, Any] = {"tensors": []} if op == "fetch" else {}
        unsupported(exam.session.say(op, handle=handle, outputs=str(outputs), **more), op, op)
        return
    half = models.half_plus_two()
    handle, artifact = (exam.load(half / "model"), half) if op == "fetch" else _load_stateful(exam)
    stored = oracle.stored_variables(artifact / "model", TAGS)
    if op == "fetch":
        wanted = {item.fetch: item.value for item in stored if item.fetch}
        exam.session.ok("fetch", handle=handle, tensors=sorted(wanted), outputs=str(outputs))
    else:
        by_key = (
            exam.session.ok("variables", handle=handle, outputs=str(outputs))["naming"] == "key"
        )
        wanted = {item.key if by_key else item.node: item.value for item in stored}
    got, why = explain.read(outputs)
    finding = None if why else compare_held(wanted, got)
    if why or finding:
        raise Mistake(why or str(finding), "P-11" if why else "P-15")


def resave(exam: Exam) -> None:
    """A model that is loaded, saved, loaded again and called, or the reply `unsupported`."""
    directory = exam.new("again")
    if "resave" not in exam.session.capabilities:
        reply = exam.session.say("resave", handle=exam.load_any()[0], dir=str(directory), tags=TAGS)
        unsupported(reply, "resave", "resave")
        return
    handle, artifact = _load_stateful(exam)
    tags = exam.session.ok("resave", handle=handle, dir=str(directory), tags=TAGS)["tags"]
    oracle.signatures(directory, tags)  # a model that can be read without the plug-in
    again = exam.load(directory, tags)
    for request in requests_of(artifact):
        call_recorded(exam, again, request, artifact / "io")


def understood(exam: Exam) -> None:
    """At least one model of these checks was answered."""
    for ask in (half_plus_two, signature_key, dtypes, no_state):
        if not exam.answered:  # or --check excluded them
            with contextlib.suppress(NotAsked):
                ask(exam)
    if not exam.answered:
        raise Mistake("it refuses every model of these checks: that it can answer is not shown")
    exam.notes.append(f"answered: {', '.join(sorted(exam.answered))}")
