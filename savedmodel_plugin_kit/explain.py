"""Explain what went wrong with a tensor: name the mistake instead of only reporting a
difference.
"""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from savedmodel_common import tensors
from savedmodel_common.tensors import CARRIERS, Tensor


def unreadable(path: Path, error: Exception) -> str:
    """Return why a file of tensors cannot be read."""
    if not path.exists():
        return "the reply is ok, but the file that `outputs` names is not there"
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            if "meta.npy" not in names:
                return (
                    "the file has no member meta.npy, which names the tensors (it has"
                    f" {', '.join(names) or 'none'})"
                )
            for name in names:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    array = np.lib.format.read_array(archive.open(name), allow_pickle=False)
                if array.dtype.byteorder == ">":
                    return (
                        f"{name} is stored big-endian ({array.dtype.str}); the bytes of every"
                        " tensor are little-endian"
                    )
                if array.dtype.kind in "US":
                    return (
                        f"{name} holds text ({array.dtype.str}): numbers are stored as numbers,"
                        " strings as bytes and offsets"
                    )
                if array.flags.f_contiguous and not array.flags.c_contiguous and array.ndim > 1:
                    return f"{name} is stored column by column (fortran_order); rows come first"
    except zipfile.BadZipFile:
        return "the file that `outputs` names is not a zip archive: tensors are exchanged as .npz"
    except Exception:  # the first reason is the better one
        pass
    return f"the file of the outputs breaks the format: {error}"


def outputs(
    wanted: Mapping[str, Tensor],
    got: Mapping[str, Tensor],
    others: Mapping[str, Tensor] | None = None,
) -> str:
    """Return what is wrong with the outputs of a call, or "".

    ``others``: the answers to other questions, by name.
    """
    missing, further = sorted(set(wanted) - set(got)), sorted(set(got) - set(wanted))
    if missing or further:
        return (
            f"the outputs are called {', '.join(sorted(got)) or 'nothing'}, the signature calls"
            f" them {', '.join(sorted(wanted))}"
        )
    if len(wanted) == 2:
        one, other = wanted
        if not tensor(wanted[one], got[other]) and not tensor(wanted[other], got[one]):
            return (
                f"outputs {one!r} and {other!r} are swapped: they are told apart by the keys of the"
                " SignatureDef, not by order"
            )
    for name, expected in wanted.items():
        why = tensor(expected, got[name], others)
        if why:
            return f"output {name!r}: {why}"
    return ""


def tensor(wanted: Tensor, got: Tensor, others: Mapping[str, Tensor] | None = None) -> str:
    """Return what is wrong with a tensor, or ""."""
    if wanted.dtype != got.dtype:
        return _other_dtype(wanted, got)
    if _same(wanted, got):
        return ""
    for what, other in (others or {}).items():
        if other.dtype == got.dtype and _same(other, got) and not _same(other, wanted):
            return f"this is the answer to {what}"
    if wanted.array.shape != got.array.shape:
        return _other_shape(wanted, got)
    if wanted.dtype == "string":
        return _other_strings(wanted.array.ravel().tolist(), got.array.ravel().tolist())
    return _other_values(wanted, got)


def _same(one: Tensor, other: Tensor) -> bool:
    if one.array.shape != other.array.shape:
        return False
    if one.dtype == "string":
        return bool(one.array.tolist() == other.array.tolist())
    return bool(one.array.tobytes() == other.array.tobytes())


def _other_dtype(wanted: Tensor, got: Tensor) -> str:
    text = f"has the dtype {got.dtype}, not {wanted.dtype}"
    if got.dtype == "string":
        return (
            f"{text}: it was printed as text ({got.array.ravel().tolist()[:2]}); the bits of a"
            " number are lost that way"
        )
    if wanted.dtype in ("bfloat16", "float16", "int64", "float64"):
        return f"{text}: it was converted to the dtype that the worker computes with"
    return text


def _other_shape(wanted: Tensor, got: Tensor) -> str:
    shapes = f"has the shape {list(got.array.shape)}, not {list(wanted.array.shape)}"
    if wanted.array.ndim == 0 and got.array.size == 1:
        return f"{shapes}: a scalar was made a list of one"
    if got.array.shape == wanted.array.shape[::-1] and wanted.array.ndim > 1:
        return f"{shapes}: it was transposed"
    if wanted.array.size == got.array.size:
        return f"{shapes}: the shape was lost, the number of elements is right"
    return shapes


def _other_strings(wanted: list[bytes], got: list[bytes]) -> str:
    for one, other in zip(wanted, got):
        if one == other:
            continue
        if other == one.split(b"\0")[0] or other == one.rstrip(b"\0"):
            return f"{other!r}, not {one!r}: the string was cut at a NUL"
        if (
            other == one.decode("utf-8", "replace").encode()
            or other == one.decode("utf-8", "ignore").encode()
        ):
            return f"{other!r}, not {one!r}: strings are bytes, not UTF-8 text"
        return f"{other[:60]!r}, not {one[:60]!r}"
    return ""


def _other_values(wanted: Tensor, got: Tensor) -> str:
    one, other = np.atleast_1d(wanted.array), np.atleast_1d(got.array)
    if one.dtype.itemsize > 1 and one.byteswap().tobytes() == other.tobytes():
        return (
            "every element has its bytes in the other order: they are big-endian, under a header"
            " that says little-endian"
        )
    if one.ndim > 1 and np.reshape(one, one.shape[::-1]).T.tobytes() == other.tobytes():
        return "the elements are in another order, as if it was transposed"
    if one.ndim > 1 and one.T.ravel().tobytes() == other.tobytes():
        return "the elements are in another order: it was transposed, under its own shape"
    bits = f"u{one.dtype.itemsize}" if one.dtype.kind != "c" else f"u{one.dtype.itemsize // 2}"
    left, right = (
        np.ascontiguousarray(one).view(bits).ravel(),
        np.ascontiguousarray(other).view(bits).ravel(),
    )
    index = int(np.flatnonzero(left != right)[0])
    width = 2 * left.dtype.itemsize
    text = (
        f"element {index} has the bits {int(right[index]):0{width}x}, not"
        f" {int(left[index]):0{width}x}"
    )
    if one.dtype.kind == "f":
        flat, seen = one.ravel(), other.ravel()
        if np.isnan(flat[index]) and np.isnan(seen[index]):
            return f"{text}: the payload of a NaN was lost"
        if flat[index] == 0 and seen[index] == 0:
            return f"{text}: the sign of -0.0 was lost"
        if seen[index] == 0 and abs(flat[index]) < np.finfo(one.dtype).tiny:
            return f"{text}: a subnormal number was made zero"
        return f"{text}: {seen[index]!s}, not {flat[index]!s}"
    return f"{text} ({CARRIERS[wanted.dtype]})"


def read(path: Path) -> tuple[dict[str, Tensor], str]:
    """Return the tensors of a file, and what is wrong with the file."""
    try:
        return dict(tensors.load(path)), ""
    except (OSError, ValueError) as error:
        return {}, unreadable(path, error)
