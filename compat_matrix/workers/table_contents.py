"""The contents of a loaded model's tables, as text to be compared: dtypes, number of entries,
digest of the sorted rows.

Python 3.6 syntax. Tables that nothing has initialised, and those without an entry, are left out.
"""

import collections
import hashlib

import numpy as np

KINDS = ("HashTable", "MutableHashTable", "MutableHashTableOfTensors", "MutableDenseHashTable")


def of_session(tf, graph, session):
    """Those of a graph of TF 1: ``[(key dtype, value dtype, described)]``.

    Nodes of one shared name are one table.
    """
    found = {}
    for op in graph.get_operations():
        if op.type in KINDS or (op.type.endswith("V2") and op.type[:-2] in KINDS):
            found[op.get_attr("container"), op.get_attr("shared_name") or op.name.encode()] = op
    out = []
    for op in found.values():
        types = op.get_attr("key_dtype"), op.get_attr("value_dtype")
        with graph.as_default():
            export = (
                tf.raw_ops.LookupTableExportV2
                if op.type.endswith("V2")
                else tf.raw_ops.LookupTableExport
            )
            rows = export(table_handle=op.outputs[0], Tkeys=types[0], Tvalues=types[1])
        try:
            keys, values = session.run([rows.keys, rows.values])
        except (tf.errors.AbortedError, tf.errors.FailedPreconditionError):  # it has no value
            continue
        out += [(types[0].name, types[1].name, text) for text in _described(types, keys, values)]
    return out


def of_resources(tf, resources, types):
    """Those among the resources of a model of TF 2, which do not say what they hold: one of the
    pairs in ``types``.
    """
    out = []
    for resource in resources:
        for names in types:
            rows = rows_of(tf, resource.resource_handle, names)
            if rows is not None:
                pair = tf.as_dtype(names[0]), tf.as_dtype(names[1])
                out += [(names[0], names[1], text) for text in _described(pair, *rows)]
                break
    return out


def rows_of(tf, handle, names):
    """``(keys, values)`` of a table with these dtypes; None where it has others, or no value
    yet.
    """
    pair = tf.as_dtype(names[0]), tf.as_dtype(names[1])
    if not _fits(tf, handle, pair):
        return None
    rows = tf.raw_ops.LookupTableExportV2(table_handle=handle, Tkeys=pair[0], Tvalues=pair[1])
    return rows.keys.numpy(), rows.values.numpy()


def _fits(tf, handle, types):
    """Whether there is an initialised table of these dtypes.

    An export with other ones ends the process; a look-up says so.
    """
    nothing, default = tf.zeros([0], types[0]), tf.zeros([], types[1])
    try:
        tf.raw_ops.LookupTableFindV2(table_handle=handle, keys=nothing, default_value=default)
    except tf.errors.InvalidArgumentError as error:
        return "hape" in str(error) and "ignature" not in str(
            error
        )  # dtypes are compared before shapes are
    except tf.errors.OpError:
        return False
    return True


def _described(types, keys, values):
    rows = list(zip(map(_bytes, keys), map(_bytes, values)))
    buckets = collections.Counter(
        key for key, _ in rows
    )  # a dense table exports its empty ones, all of one key
    rows = sorted(row for row in rows if buckets[row[0]] == 1)
    whole = hashlib.sha256()
    for row in rows:
        for part in row:
            whole.update(b"%d:%s" % (len(part), part))
    return (
        [
            "%s -> %s, %d entries %s"
            % (types[0].name, types[1].name, len(rows), whole.hexdigest()[:16])
        ]
        if rows
        else []
    )


def _bytes(value):
    if isinstance(value, bytes):
        return value
    array = np.asarray(value)
    return (
        b"".join(b"%d:%s" % (len(item), item) for item in array.ravel())
        if array.dtype == object
        else array.tobytes()
    )
