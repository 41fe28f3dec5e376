"""Checks of the conversation: the start, the form of messages, their size and number, the end."""

from __future__ import annotations

import signal

from compat_matrix.plugins.tables import CAPABILITIES
from compat_matrix.runtimes.worker import PROTOCOL, START_LIMIT
from savedmodel_plugin_kit import models
from savedmodel_plugin_kit.exam import Exam
from savedmodel_plugin_kit.session import Mistake

FLOOD = 1 << 22  # bytes of unrequested output; logs are emptied at 64 MiB


def hello(exam: Exam) -> None:
    """The program starts and identifies itself."""
    session = exam.session
    reply = session.say("hello", START_LIMIT, protocol=PROTOCOL)
    if reply["status"] != "ok":
        said = session.runtime.with_advice(reply["message"])
        raise Mistake(
            f"hello of protocol {PROTOCOL} is answered with {reply['status']}: {said}", "P-05"
        )
    if reply["protocol"] != PROTOCOL:
        raise Mistake(
            f"asked for protocol {PROTOCOL}, it says it speaks {reply['protocol']}", "P-05"
        )
    if not reply["name"]:
        raise Mistake("name is empty")
    unknown = sorted(set(reply["capabilities"]) - {*CAPABILITIES, "produce", "generate"})
    if unknown:
        raise Mistake(
            f"capabilities has {', '.join(unknown)}; the protocol has {', '.join(CAPABILITIES)}",
            "P-15",
        )
    strange = sorted(set(reply.get("dtypes", ())) - set(models.NUMBERS))
    if strange:
        raise Mistake(f"dtypes has {', '.join(strange)}: the names are TensorFlow's, in lower case")
    if reply["name"] not in reply["versions"] and "tensorflow" not in reply["versions"]:
        exam.notes.append(
            f"versions has no entry {reply['name']!r}: in cell ids its version will be `unknown`"
        )
    session.hello = reply
    session.quiet()


def other_protocol(exam: Exam) -> None:
    """A protocol version that the program does not support."""
    reply = exam.session.say("hello", protocol=PROTOCOL + 998)
    if reply["status"] != "unsupported":
        raise Mistake(
            f"hello of protocol {PROTOCOL + 998} is answered with {reply['status']}, not with"
            " unsupported"
        )
    exam.session.ok("hello", protocol=PROTOCOL)


def unknown_op(exam: Exam) -> None:
    """An op from the future, and unknown members."""
    reply = exam.session.say("dance", partner="none")
    if reply["status"] != "unsupported":
        raise Mistake(f"an unknown op is answered with {reply['status']}, not with unsupported")
    exam.session.ok("hello", protocol=PROTOCOL, **{"x-of-tomorrow": {"nested": [1, None]}})


def large_messages(exam: Exam) -> None:
    """A large tensor there and back, and a request of several megabytes."""
    reply = exam.session.say("hello", protocol=PROTOCOL, padding="x" * (4 << 20))
    if reply["status"] != "ok":
        raise Mistake("a request line of 4 MiB is refused")
    handle = exam.load(models.echo(exam.new("echo"), "float32"))
    tensor = models.large(exam.large)
    exam.answer(handle, "serving_default", {"x": tensor}, {"y": tensor})
    exam.notes.append(f"a tensor of {exam.large} MiB")


def many_requests(exam: Exam) -> None:
    """Two hundred requests in one process."""
    handle, model = exam.load_any()
    pid = exam.session.process.pid
    for index in range(50):
        try:
            exam.answer(handle, model.signature, model.inputs, model.wanted)
            for _ in range(3):
                exam.session.ok("signatures", handle=handle)
        except Mistake as error:
            raise Mistake(f"after {4 * index} good requests: {error}", error.rule) from None
        if exam.session.process.pid != pid:
            raise Mistake(f"the process was another one after {4 * index} requests")


def quiet(exam: Exam) -> None:
    """The program writes nothing without a request, and does not flood stdout and stderr."""
    exam.session.quiet()
    written = exam.session.logs()
    if written > FLOOD:
        raise Mistake(f"it wrote {written >> 20} MiB to stdout and stderr")


def bye(exam: Exam) -> None:
    """A requested end."""
    exam.session.ok("bye")
    if not exam.session.left(exam.grace):
        raise Mistake(f"{exam.grace:g} s after bye the process still runs")


def end_of_channel(exam: Exam) -> None:
    """The harness is gone: no process may stay behind."""
    exam.session.ok("hello", protocol=PROTOCOL)
    if not exam.session.closed(exam.grace):
        raise Mistake(
            f"{exam.grace:g} s after the channel was closed the process still runs: it hangs at the"
            " end of its input"
        )


def sigterm(exam: Exam) -> None:
    """The usual signal to end a process."""
    exam.session.ok("hello", protocol=PROTOCOL)
    if not exam.session.signalled(signal.SIGTERM, exam.grace):
        raise Mistake(
            f"{exam.grace:g} s after SIGTERM the process still runs: it ignores the signal"
        )
