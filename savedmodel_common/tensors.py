"""Tensors in an ``.npz`` file: the one container that crosses process and version borders.

Python 3.6 syntax, standard library and NumPy only: TensorFlow 1.x workers import this file too. See
docs/exporters/artifacts.md, section 2. A tensor is a :class:`Tensor`: TensorFlow dtype name, shape
and a NumPy array. Strings are object arrays of ``bytes``; dtypes NumPy lacks are carried as
unsigned integers of the same width (``bfloat16`` as ``uint16``).
"""

import collections
import functools
import io
import json
import os
import warnings
import zipfile
from typing import Any, Mapping, NamedTuple, Optional, Tuple, Union

import numpy as np

# TensorFlow dtype name -> NumPy dtype that carries its bytes.
CARRIERS = {
    "float16": "float16", "float32": "float32", "float64": "float64", "int8": "int8",
    "int16": "int16", "int32": "int32", "int64": "int64", "uint8": "uint8", "uint16": "uint16",
    "uint32": "uint32", "uint64": "uint64", "complex64": "complex64", "complex128": "complex128",
    "bool": "bool", "bfloat16": "uint16", "qint8": "int8", "quint8": "uint8", "qint16": "int16",
    "quint16": "uint16", "qint32": "int32", "float8_e5m2": "uint8", "float8_e4m3fn": "uint8",
    "float8_e4m3fnuz": "uint8", "float8_e4m3b11fnuz": "uint8", "float8_e5m2fnuz": "uint8",
    "int4": "int8", "uint4": "uint8", "int2": "int8", "uint2": "uint8", "float4_e2m1fn": "uint8",
}  # fmt: skip
MAX_META = 1 << 24  # bytes; a meta member larger than this is hostile
MAX_UNPACKED, MAX_RATIO = (
    1 << 26,
    100,
)  # bytes that any file may unpack to, and how many times its own
# Bytes of a file that are compressed when it is written. The rest is stored: weights do not get
# smaller, which takes seconds to find out, and a reader may take large zeros that became small for
# an attack.
MAX_COMPRESSED = 1 << 20

Path = Union[str, "os.PathLike[str]"]


class Tensor(NamedTuple):
    """TensorFlow's dtype name, and the NumPy array (of the carrier's type) with the shape and the
    bits.
    """

    dtype: str
    array: Any


def from_numpy(value: Any, dtype: Optional[str] = None) -> Tensor:
    """Wrap a NumPy value.

    ``dtype`` is the TensorFlow name; taken from the array when absent.

    Arrays of ml_dtypes types (bfloat16, float8_*, int4) are recognised by their dtype's name.
    Strings may be ``bytes`` or ``str`` (encoded as UTF-8). Raises TypeError for anything that is
    not a tensor.
    """
    array = np.asarray(value)
    if array.dtype.kind in "SU" and not isinstance(value, np.ndarray):
        array = np.asarray(
            value, dtype=object
        )  # NumPy's own text types would cut trailing NULs off
    name = dtype or array.dtype.name
    if name == "string" or array.dtype.kind in "SUO":
        flat = [_as_bytes(item) for item in array.ravel().tolist()]
        out = np.empty(len(flat), dtype=object)
        out[:] = flat
        return Tensor("string", out.reshape(array.shape))
    if name not in CARRIERS:
        raise TypeError("no tensor dtype called {!r}".format(name))
    carrier = np.dtype(CARRIERS[name])
    if array.dtype != carrier:
        if array.dtype.itemsize != carrier.itemsize:
            raise TypeError("an array of {} cannot carry {}".format(array.dtype, name))
        array = np.ascontiguousarray(array).reshape(array.shape).view(carrier)
    return Tensor(name, array)


def _as_bytes(item: Any) -> bytes:
    if isinstance(item, bytes):
        return item
    if isinstance(item, str):
        return item.encode("utf-8")
    raise TypeError("a string tensor holds bytes, not {}".format(type(item).__name__))


def save(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write ``{name: Tensor}`` to ``path`` through a temporary file and a rename."""
    meta, members = [], {}
    for index, (name, tensor) in enumerate(tensors.items()):
        key = "t{}".format(index)
        array = np.asarray(tensor.array)
        meta.append({"name": name, "dtype": tensor.dtype, "shape": list(array.shape)})
        if tensor.dtype == "string":
            items = array.ravel().tolist()
            members[key] = np.frombuffer(b"".join(items), dtype=np.uint8)
            members[key + ".offsets"] = np.cumsum(
                [0] + [len(item) for item in items], dtype=np.int64
            )
        else:
            members[key] = array
    members["meta"] = np.frombuffer(json.dumps(meta).encode("utf-8"), dtype=np.uint8)
    temporary = "{}.{}.tmp".format(path, os.getpid())
    compressed = 0
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for key in sorted(members):
            buffer = io.BytesIO()
            np.lib.format.write_array(
                buffer, np.asarray(members[key], order="C"), allow_pickle=False
            )
            content = buffer.getvalue()
            small = compressed + len(content) <= MAX_COMPRESSED
            compressed += len(content) if small else 0
            # A fixed date: equal tensors give equal files, so that fixtures can be compared byte
            # for byte.
            info = zipfile.ZipInfo(key + ".npy", (1980, 1, 1, 0, 0, 0))
            archive.writestr(info, content, zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED)
    os.replace(temporary, path)


def load(path: Path, plain: bool = False) -> "collections.OrderedDict[str, Tensor]":
    """Read an ``.npz`` back into an ordered ``{name: Tensor}``.

    ``plain``: also read a file of ``numpy.savez``, whose members are tensors under their names.

    Raises ValueError when the file is not such an archive, contradicts itself (missing member,
    wrong type, offsets out of order)
    or
    unpacks to far more than it stores; OSError when it cannot be opened.
    """
    with open(str(path), "rb") as stream:
        try:
            with zipfile.ZipFile(stream) as archive:
                _check_size(path, archive, os.fstat(stream.fileno()).st_size)
                read = _read_plain if plain and "meta.npy" not in archive.namelist() else _read
                return read(path, archive)
        except (MemoryError, ValueError):
            raise
        except (
            Exception
        ) as error:  # zipfile, zlib and NumPy have many for bytes that nobody vouches for
            raise ValueError("{}: {}: {}".format(path, type(error).__name__, error))


def is_plain(path: Path) -> bool:
    """Return whether ``numpy.savez`` wrote the file: an archive without the dtypes of tensors."""
    if not zipfile.is_zipfile(str(path)):
        return False
    with zipfile.ZipFile(str(path)) as archive:
        return "meta.npy" not in archive.namelist()


def _check_size(path: Path, archive: zipfile.ZipFile, size: int) -> None:
    unpacked = sum(info.file_size for info in archive.infolist())
    if any(info.compress_size > size for info in archive.infolist()):
        raise ValueError("{}: a member ends behind the end of the file".format(path))
    if unpacked > max(MAX_UNPACKED, MAX_RATIO * size):
        raise ValueError("{}: {} bytes unpack to {}".format(path, size, unpacked))
    meta = [info.file_size for info in archive.infolist() if info.filename == "meta.npy"]
    if meta and max(meta) > MAX_META:
        raise ValueError("{}: meta member is larger than {} bytes".format(path, MAX_META))


def _read(path: Path, archive: zipfile.ZipFile) -> "collections.OrderedDict[str, Tensor]":
    out = collections.OrderedDict()  # type: collections.OrderedDict[str, Tensor]
    members = {name[:-4] for name in archive.namelist() if name.endswith(".npy")}
    if "meta" not in members:
        raise ValueError("{}: no member called meta".format(path))
    for index, entry in enumerate(
        json.loads(_member(path, archive, "meta").tobytes().decode("utf-8"))
    ):
        key = "t{}".format(index)
        name, dtype, shape = entry["name"], entry["dtype"], tuple(entry["shape"])
        if not isinstance(name, str) or name in out:
            raise ValueError("{}: {!r} is not a name, or there twice".format(path, name))
        if any(type(size) is not int or size < 0 for size in shape):
            raise ValueError("{}: {} has the shape {}".format(path, name, shape))
        if not members.issuperset([key] + [key + ".offsets"] * (dtype == "string")):
            raise ValueError("{}: {} is not there".format(path, name))
        array = _member(path, archive, key)
        if dtype == "string":
            array = _split(path, array, _member(path, archive, key + ".offsets"), shape)
        elif array.dtype != np.dtype(CARRIERS.get(dtype, "V1")) or array.shape != shape:
            raise ValueError(
                "{}: {} is {}{}, not {}{}".format(
                    path, name, array.dtype, array.shape, dtype, shape
                )
            )
        out[name] = Tensor(dtype, array)
    return out


def _read_plain(path: Path, archive: zipfile.ZipFile) -> "collections.OrderedDict[str, Tensor]":
    out = collections.OrderedDict()  # type: collections.OrderedDict[str, Tensor]
    for file in archive.namelist():
        name = file[: -len(".npy")]
        if not file.endswith(".npy") or name in out:
            raise ValueError("{}: {} is not an array, or there twice".format(path, file))
        try:
            out[name] = from_numpy(_member(path, archive, name))
        except (TypeError, ValueError) as error:
            raise ValueError(
                "{}: {}. numpy.savez keeps numbers, booleans and bytes (np.array([b'a']));"
                " savedmodel_common.tensors.save writes every dtype".format(path, error)
            )
    return out


def _member(path: Path, archive: zipfile.ZipFile, key: str) -> Any:
    """Read one array.

    The size in its header is compared with the stored size before NumPy allocates memory.
    """
    info = archive.getinfo(key + ".npy")
    with archive.open(info) as stream:
        content = stream.read()
    if content[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("{}: {} is in another version of the format".format(path, key))
    start = 10 + int.from_bytes(content[8:10], "little")
    shape, fortran, dtype = _header(content[8:start])
    count = 1
    for size in shape:
        count *= size
    if dtype.hasobject or min(shape + (0,)) < 0 or start + count * dtype.itemsize != len(content):
        raise ValueError(
            "{}: {} promises {}{}, which is not what is stored".format(path, key, dtype, shape)
        )
    array = np.frombuffer(content, dtype, count, start) if count else np.empty(0, dtype)
    return array.reshape(shape, order="F" if fortran else "C").copy()


@functools.lru_cache(maxsize=256)
def _header(content: bytes) -> "Tuple[Tuple[int, ...], bool, Any]":
    """Parse an array header, cached: NumPy parses it as a Python literal, which dominates small
    files, and few headers differ.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # of headers that need a closer look
        return np.lib.format.read_array_header_1_0(io.BytesIO(content))


def _split(path: Path, data: Any, offsets: Any, shape: Tuple[int, ...]) -> Any:
    if data.dtype != np.uint8 or offsets.dtype != np.int64 or offsets.ndim != 1:
        raise ValueError(
            "{}: strings are stored as {} and {}".format(path, data.dtype, offsets.dtype)
        )
    blob = data.tobytes()
    bounds = offsets.tolist()
    count = int(np.prod(shape, dtype=np.int64)) if shape else 1
    ordered = all(a <= b for a, b in zip(bounds, bounds[1:]))
    if len(bounds) != count + 1 or not ordered or bounds[0] != 0 or bounds[-1] != len(blob):
        raise ValueError("{}: string offsets do not fit the data".format(path))
    out = np.empty(count, dtype=object)
    out[:] = [blob[a:b] for a, b in zip(bounds, bounds[1:])]
    return out.reshape(shape)
