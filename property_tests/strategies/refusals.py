"""What makes a valid model invalid: statements for the end of its script, and the error they
deserve.
"""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from property_tests.strategies import objects, values
from property_tests.strategies.models import Model, models


@dataclass(frozen=True)
class Mistake:
    """``lines`` use ``{module}``, a module of the model, and ``{value}``, a tensor; the message of
    ``error`` has ``text``.
    """

    lines: tuple[str, ...]
    error: str
    clause: str
    text: str = "bad"


def _signature(function: str, spec: str, clause: str, key: str = '"bad"') -> Mistake:
    made = f"signatures[{key}] = tf.function({function}, input_signature=[{spec}], autograph=False)"
    return Mistake((made,), "SignatureError", clause, key.strip('"'))


SPEC = "tf.TensorSpec([None], tf.float32)"
MISTAKES = (
    Mistake(
        (
            "hidden = tf.Variable({value})",
            "{module}.bad = tf.function(lambda: tf.identity(hidden), input_signature=[])",
        ),
        "UntrackedCaptureError",
        "FN-07",
    ),
    Mistake(
        (
            "hidden = tf.Variable({value})",
            "deep = lambda: tf.cond(tf.constant(True), lambda: weight(hidden), lambda: 0.0)",
            "{module}.bad = tf.function(deep, input_signature=[], autograph=False)",
        ),
        "UntrackedCaptureError",
        "FN-07",
    ),
    Mistake(
        (
            "hidden = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)",
            (
                '{module}.bad = tf.function(lambda: hidden.lookup(tf.constant("a")),'
                " input_signature=[])"
            ),
        ),
        "UntrackedCaptureError",
        "FN-07",
    ),
    Mistake(("{module}.bad = tf.function(lambda q: q)",), "UntracedFunctionError", "FN-06"),
    Mistake(
        ("{module}.bad = tf.function(lambda q, o: q)", "{module}.bad({value}, object())"),
        "SaveError",
        "FN-09",
    ),
    Mistake(
        (
            '{module}.bad = tf.saved_model.Asset(written(folder, "gone", ""))',
            '(folder / "gone").unlink()',
        ),
        "MissingFileError",
        "RES-06",
        "gone",
    ),
    Mistake(("{module}.bad = {{1: tf.Variable({value})}}",), "SaveError", "PRIM-06"),
    Mistake(
        ("{module}.bad = tf.constant([731.5, 1.25])",), "SaveError", "PRIM-06"
    ),  # numbers that no function has
    Mistake(
        ('n0.signatures = {{"bad": tf.Variable({value})}}',),
        "SignatureError",
        "ATTR-07",
        "signatures",
    ),
    Mistake(('signatures["bad"] = {value}',), "SignatureError", "API-03"),
    Mistake(('signatures["bad"] = tf.function(lambda q: q)',), "SignatureError", "SIG-04"),
    Mistake(
        ("signatures[5] = tf.function(lambda: {value}, input_signature=[])",),
        "SignatureError",
        "API-03",
        "5",
    ),
    _signature("lambda: {value}", "", "API-03", '"__saved_model_init_op"'),
    _signature("lambda q: [[q]]", SPEC, "SIG-12"),
    _signature("lambda q: {{1: q}}", SPEC, "SIG-12"),
    _signature("lambda q: {{'a': None}}", SPEC, "SIG-12"),
    _signature("lambda q: q[0]", f"[{SPEC}, {SPEC}]", "SIG-13"),
)


@st.composite
def invalid_models(draw: st.DrawFn, mistake: Mistake) -> tuple[Model, tuple[str, ...]]:
    """A valid model, and the statements that spoil it."""
    model = draw(models(max_objects=4, max_functions=2))
    modules = [
        index for index, item in enumerate(model.objects) if isinstance(item, objects.Module)
    ]
    words = {
        "module": f"n{draw(st.sampled_from(modules))}",
        "value": draw(values.values()).source(),
    }
    return model, tuple([line.format(**words) for line in mistake.lines])
