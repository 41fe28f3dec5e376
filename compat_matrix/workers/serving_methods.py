"""The conventions that TF Serving has for the method names of its Classify and Regress.

Python 3.6 syntax.
"""

from . import signature_wire

CLASSIFY, REGRESS = "tensorflow/serving/classify", "tensorflow/serving/regress"


def marked(described, model):
    """``described``, with ``method`` {name, conventional, reason} where Serving treats the method
    name in its own way.
    """
    for key, sides in model.signatures.items():
        method = signature_wire.method_name(model.signature_defs[key])
        if method in (CLASSIFY, REGRESS):
            reason = unconventional(method, *sides)
            described[key]["method"] = {
                "name": method,
                "conventional": reason is None,
                "reason": reason,
            }
    return described


def unconventional(method, inputs, outputs):
    """Why Serving's Classify or Regress would refuse a signature with such a method name; None when
    it would not.
    """
    given = {entry.name: entry for entry in inputs}
    produced = {entry.name: entry for entry in outputs}
    if list(given) != ["inputs"]:
        return "its one input must be called 'inputs', it takes {}".format(sorted(given))
    # Serving feeds a vector of serialized tf.Examples, whatever the SignatureDef says.
    if given["inputs"].dtype != "string":
        return "its input is {}, Serving feeds serialized examples (string)".format(
            given["inputs"].dtype
        )
    if not _may_be(given["inputs"], [-1]):
        return "its input has {} dimensions, Serving feeds a vector".format(
            len(given["inputs"].shape)
        )
    return (_classify if method == CLASSIFY else _regress)(produced)


def _classify(outputs):
    if not 1 <= len(outputs) <= 2:
        return "it has {} outputs, one or two are allowed".format(len(outputs))
    known = [
        (name, dtype)
        for name, dtype in (("classes", "string"), ("scores", "float32"))
        if name in outputs
    ]
    if not known:
        return "it has neither an output 'classes' nor 'scores': {}".format(sorted(outputs))
    for name, dtype in known:
        if outputs[name].dtype != dtype:
            return "its output {!r} is {}, not {}".format(name, outputs[name].dtype, dtype)
    for name, _ in known:
        if not _may_be(outputs[name], [-1, -1]):
            return "its output {!r} is not [batch, classes]".format(name)
    return None


def _regress(outputs):
    if list(outputs) != ["outputs"]:
        return "its one output must be called 'outputs', it has {}".format(sorted(outputs))
    output = outputs["outputs"]
    if output.dtype != "float32":
        return "its output is {}, not float32".format(output.dtype)
    if not _may_be(output, [-1]) and not _may_be(output, [-1, 1]):
        return "its output is neither [batch] nor [batch, 1]"
    return None


def _may_be(entry, sizes):
    """Return whether a tensor of this shape may have ``sizes`` (-1: any).

    Unknown dimensions of the SignatureDef are checked by the run.
    """
    if entry.shape is None:
        return True
    pairs = list(zip(entry.shape, sizes))
    return len(entry.shape) == len(sizes) and all(
        one < 0 or other < 0 or one == other for one, other in pairs
    )
