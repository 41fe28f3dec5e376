"""Read the inputs of a signature from texts of a command line and from files."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from reference_eval.arrays import object_array
from savedmodel_common import strict_json, tensors
from savedmodel_tools.contract import values

Array = npt.NDArray[Any]
Shape = Optional[tuple[int, ...]]
Specs = Mapping[str, tuple[np.dtype[Any], Shape]]  # input -> dtype and shape, as of a `Signature`

SUFFIXES = (".npy", ".npz", ".json")
_STRING = np.dtype(object)


class InputError(ValueError):
    """Raised when an input cannot be read or does not fit the signature."""


def parse(texts: Iterable[str], specs: Specs, defaults: Collection[str] = ()) -> dict[str, Array]:
    """Return the inputs that the texts give.

    Args:
      texts: ``x=[[1, 2]]``, ``x=rows.npy`` or ``x=rows.json`` for one input; ``inputs.npz`` or
        ``inputs.json`` for all.
      specs: the inputs of the signature.
      defaults: the inputs that may be left out.

    Raises InputError: a file cannot be read, an input is unknown, missing, given twice, or does not
    fit.
    """
    given: dict[str, Array] = {}
    for text in texts:
        for name, value in _values(text, specs):
            if name not in specs:
                raise InputError(f"the signature has no input {name!r}; {_listed(specs)}")
            if name in given:
                raise InputError(f"the input {name!r} is given twice")
            given[name] = fitted(name, value, *specs[name])
    missing = [name for name in specs if name not in given and name not in defaults]
    if missing:
        raise InputError(f"the input {missing[0]!r} is missing; {_listed(specs)}")
    return given


def _listed(specs: Specs) -> str:
    if not specs:
        return "it has no inputs"
    shown = [f"{name} ({spec_text(*spec)})" for name, spec in specs.items()]
    return f"its inputs: {', '.join(shown)}"


def spec_text(dtype: np.dtype[Any], shape: Shape) -> str:
    """Return a dtype and a shape as text, e.g. ``float32[?, 3]``; strings are ``string``."""
    name = "string" if dtype == _STRING else dtype.name
    if shape is None:
        return f"{name}, any shape"
    return f"{name}[{', '.join('?' if size < 0 else str(size) for size in shape)}]"


def _values(text: str, specs: Specs) -> Iterator[tuple[str, Any]]:
    """Yield the names and values that one text gives.

    A name may contain ``=``: the longest input that fits counts.
    """
    names = [name for name in specs if text.startswith(f"{name}=")]
    if names:
        name = max(names, key=len)
        yield name, _value(name, text[len(name) + 1 :])
        return
    path = Path(text)
    if path.suffix in (".npz", ".json") and path.exists():
        yield from _mapping(path).items()
        return
    name, equals, _ = text.partition("=")
    if not equals:
        raise InputError(f"{text!r} is neither NAME=VALUE nor an .npz or .json file")
    raise InputError(f"the signature has no input {name!r}; {_listed(specs)}")


def _value(name: str, text: str) -> Any:
    """Return what follows ``NAME=``: the content of a file, or the value of a JSON text."""
    path = Path(text)
    if path.suffix == ".npy":
        return _npy(path)
    if path.suffix == ".npz":
        found = _npz(path)
        if name not in found and len(found) != 1:
            raise InputError(f"{path}: it has no array {name!r}; it has {', '.join(found)}")
        return found.get(name, next(iter(found.values())))
    if path.suffix == ".json":
        return _json(path)
    try:
        return strict_json.loads(text)
    except ValueError as error:
        reason = f"{text!r} is neither JSON nor a file that ends in {', '.join(SUFFIXES)}"
        raise InputError(f"input {name!r}: {reason} ({error})") from error


def _mapping(path: Path) -> Mapping[str, Any]:
    found = _npz(path) if path.suffix == ".npz" else _json(path)
    if not isinstance(found, Mapping):
        raise InputError(f"{path}: it is not an object with a value for each input")
    return found


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn what readers raise into an InputError that names the file."""
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    except (ValueError, EOFError, KeyError, zipfile.BadZipFile, MemoryError) as error:
        raise InputError(f"{path}: {error}") from error


def _json(path: Path) -> Any:
    with _reading(path):
        return strict_json.loads(path.read_text(encoding="utf-8"))


def _npy(path: Path) -> Array:
    with _reading(path):
        loaded: Array = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.ndarray):
            raise ValueError("it is not one array")
        return loaded


def _npz(path: Path) -> dict[str, Any]:
    """Return the arrays of an archive: one of ``np.savez``, or of an artifact's ``io`` folder."""
    with _reading(path):
        with zipfile.ZipFile(path) as archive:
            is_artifact = "meta.npy" in archive.namelist() and "t0.npy" in archive.namelist()
        if is_artifact:
            return dict(tensors.load(path))
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}


def fitted(name: str, value: Any, dtype: np.dtype[Any], shape: Shape) -> Array:
    """Return the value of an input as an array of its dtype.

    Args:
      name: of the input, for messages.
      value: an array, a `tensors.Tensor`, nested lists, or an object with ``dtype``, ``shape`` and
        ``values``.
      dtype: of the input; `object` for strings.
      shape: of the input; -1 is an unknown dimension, None an unknown rank.

    Raises InputError: a value would change, such as 1.5 for an integer, or the shape does not fit.

    Example: ``fitted("x", [1, 2], np.dtype("float32"), (-1,))`` is ``array([1., 2.])``.
    """
    try:
        array = _cast(_array(value), dtype)
    except (TypeError, ValueError, OverflowError) as error:
        wanted = spec_text(dtype, shape)
        raise InputError(f"input {name!r} cannot be {wanted}: {error}") from error
    if shape is None or _fits(array.shape, shape):
        return array
    raise InputError(
        f"input {name!r} has the shape {list(array.shape)}, not {spec_text(dtype, shape)}"
    )


def _fits(found: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    pairs = zip(found, wanted)
    return len(found) == len(wanted) and all(size in (-1, there) for there, size in pairs)


def _array(value: Any) -> Array:
    if isinstance(value, Mapping):
        value = values.from_json(value)
    if isinstance(value, tensors.Tensor):
        return _of_carrier(value)
    if isinstance(value, np.ndarray):
        return value
    array = np.asarray(value)  # raises ValueError for lists of different lengths
    return np.asarray(value, object) if array.dtype.kind in "US" else array


def _of_carrier(tensor: tensors.Tensor) -> Array:
    """Return the array of a tensor, in its own dtype where a type of the same size carries it."""
    array: Array = tensor.array
    if tensor.dtype == "string" or tensors.CARRIERS[tensor.dtype] == tensor.dtype:
        return array
    import ml_dtypes

    own = getattr(ml_dtypes, tensor.dtype, None)  # quantised types are integers
    return array if own is None else array.view(own)


def _cast(array: Array, dtype: np.dtype[Any]) -> Array:
    if dtype == _STRING:
        return _strings(array)
    if array.dtype.kind == "V" and array.dtype.names is None and array.dtype != dtype:
        return array.view(dtype)  # NumPy reads types that it does not know as raw bytes
    if array.dtype.kind in "USO" or (dtype.kind == "b") != (array.dtype.kind == "b"):
        raise TypeError(f"it is given as {_kind(array)}")
    if array.dtype.kind == "c" and dtype.kind != "c":
        raise TypeError("it is given as a complex number")
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
    if dtype.kind in "iu" and not np.array_equal(cast, array):
        raise TypeError("a number is not an integer of this type")
    return cast


def _kind(array: Array) -> str:
    return "text" if array.dtype.kind in "USO" else array.dtype.name


def _strings(array: Array) -> Array:
    if array.dtype.kind not in "USO":
        raise TypeError(f"it is given as {_kind(array)}")
    flat = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
    if not all(isinstance(item, bytes) for item in flat):
        raise TypeError("not all elements are strings")
    return object_array(flat, array.shape)
