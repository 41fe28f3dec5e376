"""How far rounding alone moves what a model computes in training: measured, on the model itself.

Imports TensorFlow and Keras.

Two graphs that compute the same add up their sums in another order, and each partial sum is
rounded. How much of that arrives in a gradient depends on the model: next to nothing of it, or all,
as in the gradient of a bias before a BatchNormalization, which is 0 and comes out as what rounding
leaves. So the weights and inputs are changed by a rounding each, at random, and what then changes
in the gradients is the size of one rounding. A sum of n terms has n roundings, which behave as a
random walk: the square root of n of them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

DRAWS = 3
DEVIATIONS = (
    4  # standard deviations of a random walk: none of the entries of a model is further off
)
# of the largest entry: a model whose gradients are less exact does not train, and proves nothing
LARGEST = 1e-4

Run = Callable[[Any], Mapping[str, Any]]


def walk(terms: int) -> float:
    """Return how many roundings an entry may be off that is a sum of so many terms."""
    return DEVIATIONS * math.sqrt(max(terms, 1))


def bounds(found: Mapping[str, Any], moved: Mapping[str, float], terms: int) -> dict[str, float]:
    """Return how far an entry of each array may be off.

    Args:
      found: the arrays by name.
      moved: how far one rounding of every weight and input moves an entry of each.
      terms: how many terms a sum has at most.
    """
    out = {}
    for name, array in found.items():
        largest = _largest(np.asarray(array, "float64"))
        eps = float(np.finfo(array.dtype).eps)
        out[name] = min(walk(terms) * (moved[name] + eps * largest), max(LARGEST, eps) * largest)
    return out


class Rounding:
    """Bounds of the difference of two models that compute the same, by name of what is compared.

    Args:
      run: calls the original model in training with inputs, and returns arrays by name (None for
        what has no gradient).
      found: what it returned for the inputs themselves.
      variables: those of the original model, with the values that they had before.
    """

    def __init__(
        self, run: Run, found: Mapping[str, Any], variables: Sequence[tuple[Any, Any]], nest: Any
    ) -> None:
        self._run, self._found, self._variables, self._nest = run, found, variables, nest
        self._walk = walk(_longest_sum([value for _, value in variables], nest))

    def bound(self, name: str, least: float = 0.0, capped: bool = True) -> float:
        """Return how far an entry may be off.

        Args:
          name: of the array.
          least: the largest entry of all arrays, 0 for this array alone.
          capped: whether `LARGEST` is the limit, however far rounding moves the array.
        """
        if name not in self._found:  # nothing is computed of it
            return 0.0
        largest = _largest(self._found[name])
        own = float(np.finfo(np.float32).eps) * largest
        found = self._walk * (self._one[name] + own)
        return min(found, LARGEST * max(largest, least)) if capped else found

    def part(self, names: Iterable[str], largest: float) -> float:
        """Return how far one rounding moves some of the arrays, as a part of their largest
        entry.
        """
        return max((self._one[name] for name in names), default=0.0) / max(largest, 1e-30)

    @functools.cached_property
    def _one(self) -> dict[str, float]:
        """Return the largest change of each array when every weight and input is rounded otherwise.

        Sets the variables back.
        """
        import keras

        kept = [variable.numpy() for variable, _ in self._variables]
        random = np.random.default_rng(5)
        moved = dict.fromkeys(self._found, 0.0)
        for _ in range(DRAWS):
            for variable, value in self._variables:
                variable.assign(rounded(value, random))
            nest = keras.tree.map_structure(
                lambda tensor: _rounded_tensor(tensor, random), self._nest
            )
            for name, array in self._run(nest).items():
                if array is not None and self._found[name] is not None:
                    moved[name] = max(moved[name], _largest(array - self._found[name]))
        for (variable, _), value in zip(self._variables, kept):
            variable.assign(value)
        return moved


def rounded(value: Any, random: Any) -> Any:
    """Return an array in which each floating-point number is one rounding off, up or down."""
    if value.dtype.kind != "f":
        return value
    return value * (
        1 + np.finfo(value.dtype).eps * random.choice([-1, 1], size=value.shape)
    ).astype(value.dtype)


def _rounded_tensor(tensor: Any, random: Any) -> Any:
    import tensorflow as tf

    return (
        tf.constant(rounded(tensor.numpy(), random))
        if isinstance(tensor, tf.Tensor) and tensor.dtype.is_floating
        else tensor
    )


def _longest_sum(weights: Sequence[Any], nest: Any) -> int:
    """Return how many terms a sum has at most: over the inputs of a unit, or over the batch with
    its positions.
    """
    import keras

    def shape(tensor: Any) -> list[int]:
        return [size or 1 for size in tensor.shape]

    return longest_sum(weights, list(map(shape, keras.tree.flatten(nest))))


def longest_sum(weights: Sequence[Any], shapes: Iterable[Sequence[int]]) -> int:
    """Return how many terms a sum has at most, from the weights and the shapes of the inputs."""
    sizes = [int(np.prod(shape)) for shape in shapes]
    return max(
        [
            1,
            *sizes,
            *(
                int(weight.size // weight.shape[-1])
                for weight in weights
                if weight.ndim and weight.size
            ),
        ]
    )


def _largest(array: Any) -> float:
    return float(np.max(np.abs(array), initial=0.0)) if array is not None else 0.0
