"""TensorFlow's data types: number, name, width in memory and in checkpoints, NumPy counterpart.

NumPy and ml_dtypes are imported when an array is requested, so that listing a model needs neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from reference_impl.format.errors import DtypeError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np

_REF_OFFSET = 100  # DT_FLOAT_REF is DT_FLOAT + 100: a reference variable's output in a TF 1.x graph


class DType(NamedTuple):
    """One data type.

    In a checkpoint, an element narrower than a byte takes one byte, with the value in the low bits
    and the high bits zero.
    """

    number: int  # in the DataType enumeration
    name: str  # TensorFlow's name in Python (`float16`); `_ref` is appended for a reference
    enum: str  # name in the enumeration (`DT_HALF`)
    itemsize: Optional[
        int
        # bytes of one element in a checkpoint; None where elements differ in length or cannot be
        # stored
    ]
    carrier: Optional[
        str
        # NumPy type of the same width, used to compare and byte-swap elements; None where
        # `itemsize` is
    ]
    ml_dtype: Optional[str]  # the type's name in ml_dtypes if NumPy lacks the type

    @property
    def is_ref(self) -> bool:
        return self.number > _REF_OFFSET

    @property
    def base(self) -> DType:
        """The type to which a reference type refers; the type itself otherwise."""
        return _BY_NUMBER[self.number - _REF_OFFSET] if self.is_ref else self

    @property
    def bits(self) -> Optional[int]:
        """Number of bits of a value: fewer than 8 * itemsize for types narrower than a byte."""
        narrow = _NARROW_BITS.get(self.base.name)
        return narrow or (None if self.itemsize is None else 8 * self.itemsize)

    def numpy(self) -> np.dtype[Any]:
        """Return the NumPy type.

        Quantized types are plain integers; strings and variants are `object`, their elements
        `bytes`.

        Raises:
          DtypeError: the type is a resource, which has no value outside its process.
          UnsupportedError: the installed ml_dtypes is too old for the type.
        """
        import numpy as np

        if self.ml_dtype is not None:
            import ml_dtypes

            if not hasattr(ml_dtypes, self.ml_dtype):
                raise UnsupportedError(
                    f"{self.name} needs a newer ml_dtypes than {ml_dtypes.__version__}"
                )
            dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self.ml_dtype))
            return dtype
        if self.carrier is not None:
            return np.dtype(self.carrier)
        if self.base.name == "resource":
            raise DtypeError("a resource has no value outside its process")
        return np.dtype(object)


# number, name, enum, bytes, carrier; a carrier with another name means that ml_dtypes or an integer
# represents the type.
_ROWS: list[tuple[int, str, str, Optional[int], Optional[str]]] = [
    (1, "float32", "DT_FLOAT", 4, "float32"),
    (2, "float64", "DT_DOUBLE", 8, "float64"),
    (3, "int32", "DT_INT32", 4, "int32"),
    (4, "uint8", "DT_UINT8", 1, "uint8"),
    (5, "int16", "DT_INT16", 2, "int16"),
    (6, "int8", "DT_INT8", 1, "int8"),
    (7, "string", "DT_STRING", None, None),
    (8, "complex64", "DT_COMPLEX64", 8, "complex64"),
    (9, "int64", "DT_INT64", 8, "int64"),
    (10, "bool", "DT_BOOL", 1, "bool"),
    (11, "qint8", "DT_QINT8", 1, "int8"),
    (12, "quint8", "DT_QUINT8", 1, "uint8"),
    (13, "qint32", "DT_QINT32", 4, "int32"),
    (14, "bfloat16", "DT_BFLOAT16", 2, "uint16"),
    (15, "qint16", "DT_QINT16", 2, "int16"),
    (16, "quint16", "DT_QUINT16", 2, "uint16"),
    (17, "uint16", "DT_UINT16", 2, "uint16"),
    (18, "complex128", "DT_COMPLEX128", 16, "complex128"),
    (19, "float16", "DT_HALF", 2, "float16"),
    (20, "resource", "DT_RESOURCE", None, None),
    (21, "variant", "DT_VARIANT", None, None),
    (22, "uint32", "DT_UINT32", 4, "uint32"),
    (23, "uint64", "DT_UINT64", 8, "uint64"),
    (24, "float8_e5m2", "DT_FLOAT8_E5M2", 1, "uint8"),
    (25, "float8_e4m3fn", "DT_FLOAT8_E4M3FN", 1, "uint8"),
    (26, "float8_e4m3fnuz", "DT_FLOAT8_E4M3FNUZ", 1, "uint8"),
    (27, "float8_e4m3b11fnuz", "DT_FLOAT8_E4M3B11FNUZ", 1, "uint8"),
    (28, "float8_e5m2fnuz", "DT_FLOAT8_E5M2FNUZ", 1, "uint8"),
    (29, "int4", "DT_INT4", 1, "int8"),
    (30, "uint4", "DT_UINT4", 1, "uint8"),
    (31, "int2", "DT_INT2", 1, "int8"),
    (32, "uint2", "DT_UINT2", 1, "uint8"),
    (33, "float4_e2m1fn", "DT_FLOAT4_E2M1FN", 1, "uint8"),
]
_NARROW_BITS = {"int4": 4, "uint4": 4, "int2": 2, "uint2": 2, "float4_e2m1fn": 4}


def _table() -> dict[int, DType]:
    table = {}
    for number, name, enum, itemsize, carrier in _ROWS:
        is_ml_dtype = name in _NARROW_BITS or name == "bfloat16" or name.startswith("float8")
        dtype = DType(number, name, enum, itemsize, carrier, name if is_ml_dtype else None)
        table[number] = dtype
        table[number + _REF_OFFSET] = dtype._replace(
            number=number + _REF_OFFSET, name=name + "_ref", enum=enum + "_REF"
        )
    return table


_BY_NUMBER = _table()
_BY_NAME = {dtype.name: dtype for dtype in _BY_NUMBER.values()}
_BY_ENUM = {dtype.enum: dtype for dtype in _BY_NUMBER.values()}

ALL: tuple[DType, ...] = tuple(dtype for dtype in _BY_NUMBER.values() if not dtype.is_ref)


def by_number(number: int) -> DType:
    """Return the type with this number in the DataType enumeration. Raises DtypeError."""
    try:
        return _BY_NUMBER[number]
    except KeyError:
        raise DtypeError(
            "the dtype is invalid" if number == 0 else f"no dtype has the number {number}"
        ) from None


def by_name(name: str) -> DType:
    """Return the type called `float16` or `DT_HALF`. Raises DtypeError."""
    found = _BY_NAME.get(name) or _BY_ENUM.get(name)
    if found is None:
        raise DtypeError(f"there is no dtype {name!r}")
    return found


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """Return the type of a NumPy or ml_dtypes array; every kind of text is `string`.

    Raises DtypeError.
    """
    if dtype.kind in "SUOT":
        return _BY_NAME["string"]
    found = _BY_NAME.get(dtype.name)
    if found is None or found.itemsize != dtype.itemsize:
        raise DtypeError(f"no dtype corresponds to NumPy's {dtype.name}")
    return found
