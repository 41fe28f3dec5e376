"""A SavedModel as a Keras 3 layer.

Works only on Keras' TensorFlow backend, because the functions of a SavedModel are TensorFlow
graphs.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Optional, Union

import keras

import reference_impl
from savedmodel_compat.keras import nests
from savedmodel_compat.keras.endpoint import Endpoint, regularization_losses, variables_of
from savedmodel_compat.keras.source import Source, copied_from, known, resolve

_KEPT_SPECS = 16  # for calls with other shapes; a functional model needs a size


@keras.saving.register_keras_serializable(package="savedmodel_compat")
class SavedModelLayer(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """A layer that calls a SavedModel and trains its weights.

    It takes any SavedModel: of TF 1.x, TensorFlow Hub, Keras 2 and 3, or a `tf.Module`. It works in
    functional, Sequential and subclassed models. `model.save("x.keras")` puts the SavedModel into
    the file; import `savedmodel_compat.keras` before you load it, and pass `safe_mode=False` if you
    trust the file.

    Args:
      handle: the folder of a SavedModel.
      endpoint: a signature, or a callable attribute of the model. By default the model itself if it
        is callable, else `serve`, `serving_default`, `default` or the only signature.
      training_endpoint: called instead of `endpoint` while the model trains. Not needed if the
        function has an argument `training`.
      tags: tags of the MetaGraph, if there are several. By default none for a TF 1.x Hub module,
        whose graph for inference has no tags.
      output_key: return this entry of a dict of outputs. By default a signature with one output
        returns the tensor.
      arguments: further keyword arguments of the function, with JSON values.
      trainable: whether the weights that are trainable in the SavedModel train.
      options: a `reference_impl.LoadOptions`.
      **keywords: arguments of `keras.layers.Layer`.

    Raises:
      FileNotFoundError: there is no such folder.
      NotImplementedError: Keras runs on another backend.
      SavedModelError: the SavedModel is broken.
      ValueError: there is no such endpoint.

    RFC: GOAL-12
    """

    def __init__(
        self,
        handle: Union[str, os.PathLike[str], None],
        endpoint: Optional[str] = None,
        training_endpoint: Optional[str] = None,
        tags: Union[str, Sequence[str], None] = None,
        output_key: Optional[str] = None,
        arguments: Optional[Mapping[str, Any]] = None,
        trainable: bool = True,
        options: Any = None,
        **keywords: Any,
    ) -> None:
        if keras.backend.backend() != "tensorflow":
            raise NotImplementedError(
                f"{type(self).__name__} needs Keras' TensorFlow backend, this is"
                f" {keras.backend.backend()}"
            )
        keywords.setdefault("autocast", False)  # a SavedModel takes the dtypes it was saved with
        super().__init__(trainable=trainable, **keywords)
        self.endpoint, self.training_endpoint, self.output_key = (
            endpoint,
            training_endpoint,
            output_key,
        )
        if isinstance(tags, str):
            tags = [tags]
        self._tags = list(tags) if tags is not None else None
        self._arguments = keras.tree.map_structure(lambda value: value, dict(arguments or {}))
        self._options = options
        self._specs = "[]"  # JSON, which Keras does not search for weights
        self._key: Optional[str] = None
        self.saved_variables: Any = None
        self._loaded: Any = None
        self._source: Optional[Source] = None
        if handle is not None:
            self._open(Source(resolve(handle)))

    @property
    def resolved_object(self) -> Any:
        """The object that `reference_impl.load` returned."""
        return self._loaded

    def _open(self, source: Source) -> None:
        """Load a SavedModel.

        Its variables become those of this layer; existing values of the layer are kept.
        """
        tags = [] if self._tags is None and source.is_hub_module else self._tags
        loaded = reference_impl.load(source.path, tags, self._options)
        self._inference = self._endpoint(loaded, self.endpoint)
        self._training = (
            self._endpoint(loaded, self.training_endpoint)
            if self.training_endpoint
            else self._inference
        )
        found = [
            (variable, trains)
            for variable, trains in variables_of(loaded)
            if holds_numbers(variable)
        ]
        if self.saved_variables is None:
            with self._names([variable.name for variable, _ in found]) as names:
                self._adopt(
                    [keras_variable(variable, trains, next(names)) for variable, trains in found]
                )
        else:
            _rebind(self.saved_variables, [variable for variable, _ in found], self.name)
        self._loaded, self._source = loaded, source
        self.built = True

    @contextlib.contextmanager
    def _names(self, names: Sequence[str]) -> Iterator[Iterator[str]]:
        """Give the names of Keras variables, each another one, in the scope of the layer."""
        counts = Counter[str]()
        with keras.name_scope(self.name):
            yield (_counted(_named(name), counts) for name in names)

    def _adopt(self, variables: Sequence[Any]) -> None:
        """Make Keras variables those of this layer.

        Trainable variables of the SavedModel train when the layer trains.
        """
        self.saved_variables = list(variables)
        for variable in variables:
            variable.trainable = variable.trainable and self.trainable

    def build(self, input_shape: Any = None) -> None:
        """Do nothing: the variables are those of the SavedModel."""
        self.built = True

    def call(self, inputs: Any, training: Optional[bool] = None, **tensors: Any) -> Any:
        """Return the results of the SavedModel's function; add its losses to those of the model.

        Args:
          inputs: the first argument of the function, or the inputs of a signature.
          training: whether the model trains.
          **tensors: further arguments of the function, which the file names.
        """
        if self._loaded is None:
            raise ValueError(
                f"layer {self.name!r} has no SavedModel: its model was not loaded from a whole"
                " .keras file"
            )
        training = self._trains(training)
        endpoint = self._training if training else self._inference
        outputs, losses = endpoint(inputs, training, {**self._arguments, **tensors})
        for loss in [
            *losses,
            *([item() for item in regularization_losses(self._loaded)] if self.trainable else ()),
        ]:
            self.add_loss(loss)
        return self._picked(outputs, endpoint)

    def _picked(self, outputs: Any, endpoint: Endpoint) -> Any:
        if self.output_key is not None:
            if not isinstance(outputs, Mapping) or self.output_key not in outputs:
                there = ", ".join(sorted(outputs)) if isinstance(outputs, Mapping) else "no dict"
                raise ValueError(
                    f"layer {self.name!r}: no output {self.output_key!r} (there is: {there})"
                )
            return outputs[self.output_key]
        if endpoint.is_signature and len(outputs) == 1 and not self._always_dict():
            return next(iter(outputs.values()))
        return outputs

    def _trains(self, training: Optional[bool]) -> bool:
        """Return whether the SavedModel is called as in training.

        A frozen layer predicts, as BatchNormalization does.
        """
        return bool(training) and self.trainable

    def _endpoint(self, loaded: Any, name: Optional[str]) -> Endpoint:
        return Endpoint(loaded, name)

    def _always_dict(self) -> bool:
        """Return whether a signature with one output returns a dict."""
        return False

    def compute_output_spec(
        self, inputs: Any, training: Optional[bool] = None, **tensors: Any
    ) -> Any:
        """Return the specs of the outputs, or the saved specs while the SavedModel is not
        loaded.
        """
        given = nests.to_json([inputs, tensors] if tensors else inputs)
        if self._loaded is None:
            for spec in json.loads(self._specs):
                if nests.same(spec["inputs"], given):
                    return nests.from_json(spec["outputs"])
            raise ValueError(f"layer {self.name!r} was not saved for inputs like {given}")
        outputs = super().compute_output_spec(inputs, training=training, **tensors)
        spec = {"inputs": given, "outputs": nests.to_json(outputs)}
        before = json.loads(self._specs)
        if spec not in before:
            self._specs = json.dumps([*before, spec][-_KEPT_SPECS:])
        return outputs

    def save_assets(self, dir_path: str) -> None:
        """Put the SavedModel into a `.keras` file."""
        if self._source is None:
            raise ValueError(f"layer {self.name!r} has no SavedModel to save")
        self._source.copy_to(dir_path)

    def load_assets(self, dir_path: str) -> None:
        """Load the SavedModel of a `.keras` file."""
        if self._loaded is None:
            self._open(copied_from(dir_path, self._key))

    def get_config(self) -> dict[str, Any]:
        """Return the configuration of the layer, without the SavedModel."""
        return {
            **super().get_config(),
            "endpoint": self.endpoint,
            "training_endpoint": self.training_endpoint,
            "tags": self._tags,
            "output_key": self.output_key,
            "arguments": dict(self._arguments),
            "saved_model": self._source.key if self._source else None,
            "saved_variables": [
                {"name": v.name, "shape": list(v.shape), "dtype": v.dtype, "trainable": trains}
                for v, trains in zip(self.saved_variables, self._saved_trainable())
            ],
            "specs": json.loads(self._specs),
        }

    def _saved_trainable(self) -> list[bool]:
        """Return whether each variable trains in the SavedModel, independently of the layer's
        current `trainable`.
        """
        trains = {id(variable) for variable in self._trainable_variables}
        return [id(variable) in trains for variable in self.saved_variables]

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], safe_mode: Optional[bool] = None
    ) -> SavedModelLayer:
        """Return the layer of a configuration: a copy in this process, or an empty layer that
        `load_assets` fills.

        Raises:
          ValueError: the configuration comes from an untrusted file (`safe_mode`); a SavedModel is
            a program.
        """
        config = dict(config)
        key, variables, specs = (
            config.pop(name, None) for name in ("saved_model", "saved_variables", "specs")
        )
        source = known(key)
        if source is None and _in_safe_mode(safe_mode):
            raise ValueError(
                f"{cls.__name__} {config.get('name')!r} runs the SavedModel of this file, which is"
                " a program. If you trust the file: keras.saving.load_model(..., safe_mode=False)."
            )
        layer = cls(None, **config)
        layer._key, layer._specs = key, json.dumps(specs or [])
        if source is not None:
            layer._open(source)
        else:
            with layer._names([item["name"] for item in variables or ()]) as names:
                layer._adopt([_placeholder(item, next(names)) for item in variables or ()])
            layer.built = True
        return layer


def _in_safe_mode(given: Optional[bool]) -> bool:
    from keras.src.saving import (
        serialization_lib,
    )  # as in keras.layers.TFSMLayer; there is no public API

    return (given if given is not None else serialization_lib.in_safe_mode()) is True


def holds_numbers(variable: Any) -> bool:
    """Return whether Keras can have it as a variable: Keras does not support strings, quantized
    numbers and open shapes.
    """
    try:
        dtype = keras.backend.standardize_dtype(variable.dtype)
    except ValueError:
        return False
    return dtype != "string" and bool(variable.shape.is_fully_defined())


def keras_variable(variable: Any, trainable: bool, name: Optional[str] = None) -> Any:
    """Return a Keras variable that is a variable of TensorFlow, not a copy of it."""
    name = name or _named(variable.name)
    return keras.Variable(
        variable, shape=variable.shape, dtype=variable.dtype, trainable=trainable, name=name
    )


def _named(name: str) -> str:
    return name.split(":")[0].replace("/", "_")


def _counted(name: str, counts: Counter[str]) -> str:
    """Return the name, with a number if it was there before."""
    counts[name] += 1
    return name if counts[name] == 1 else f"{name}_{counts[name] - 1}"


def _placeholder(item: Mapping[str, Any], name: str) -> Any:
    shape = tuple(int(size) for size in item["shape"])
    return keras.Variable(
        "zeros", shape=shape, dtype=item["dtype"], trainable=item["trainable"], name=name
    )


def _rebind(variables: Sequence[Any], loaded: Sequence[Any], name: str) -> None:
    """Point Keras variables at the loaded variables, which take over the Keras variables'
    values.
    """
    if [tuple(v.shape) for v in variables] != [tuple(v.shape) for v in loaded]:
        raise ValueError(
            f"layer {name!r}: the SavedModel of the file has other variables than its configuration"
            " says"
        )
    for variable, target in zip(variables, loaded):
        target.assign(variable.value)
        # There is no public API. Without the first, the layer would train copies. The second lets
        # an optimizer that was built before the SavedModel was loaded find its variables.
        target._unique_id = variable.value._unique_id
        variable._value = target
