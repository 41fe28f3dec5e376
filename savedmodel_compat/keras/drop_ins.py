"""`SavedModelLayer` with the arguments of the layers that it replaces."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import keras

from savedmodel_compat.keras.endpoint import Endpoint
from savedmodel_compat.keras.layer import SavedModelLayer


@keras.saving.register_keras_serializable(package="savedmodel_compat")
class KerasLayer(SavedModelLayer):
    """A drop-in for `hub.KerasLayer` in Keras 3: the same arguments.

    Args:
      handle: the folder of a SavedModel, or an address that `tensorflow_hub` resolves.
      trainable: whether its weights train; False by default, as in `hub.KerasLayer`.
      arguments: further keyword arguments of the function.
      tags: of the MetaGraph.
      signature: the signature to call. By default the model itself, or `default` for TF 1.x Hub
        modules.
      signature_outputs_as_dict: return all outputs of the signature as a dict.
      output_key: return this output.
      output_shape: not needed, since the shape is computed. It is kept in the configuration.
      load_options: a `reference_impl.LoadOptions`.
      **keywords: of `keras.layers.Layer`.

    Raises:
      ValueError: both or none of `output_key` and `signature_outputs_as_dict` are given with a
        signature.
      FileNotFoundError, NotImplementedError, SavedModelError: as `SavedModelLayer`.

    RFC: GOAL-12
    """

    def __init__(
        self,
        handle: Union[str, os.PathLike[str], None],
        trainable: bool = False,
        arguments: Optional[Mapping[str, Any]] = None,
        *,
        tags: Union[str, Sequence[str], None] = None,
        signature: Optional[str] = None,
        signature_outputs_as_dict: Optional[bool] = None,
        output_key: Optional[str] = None,
        output_shape: Any = None,
        load_options: Any = None,
        **keywords: Any,
    ) -> None:
        if signature and (output_key is not None) == bool(signature_outputs_as_dict):
            raise ValueError(
                "with a signature, give either output_key or signature_outputs_as_dict=True"
            )
        self._as_dict = bool(signature_outputs_as_dict)
        self._wanted_shape = output_shape
        super().__init__(
            handle,
            signature,
            tags=tags,
            output_key=output_key,
            arguments=arguments,
            trainable=trainable,
            options=load_options,
            **keywords,
        )

    def _endpoint(self, loaded: Any, name: Optional[str]) -> Endpoint:
        return Endpoint(loaded, name, only_signatures=True)

    def _always_dict(self) -> bool:
        return self._as_dict

    def _picked(self, outputs: Any, endpoint: Any) -> Any:
        hub_module = (
            endpoint.name == "default"
            and not self.endpoint
            and not self._as_dict
            and self.output_key is None
        )
        if hub_module and isinstance(outputs, Mapping) and "default" in outputs:
            return outputs["default"]
        return super()._picked(outputs, endpoint)

    def get_config(self) -> dict[str, Any]:
        """Return what the layer is made of, without the SavedModel."""
        config = super().get_config()
        del config["training_endpoint"]
        own = {
            "signature": config.pop("endpoint"),
            "signature_outputs_as_dict": self._as_dict or None,
        }
        return {**config, **own, "output_shape": self._wanted_shape}


@keras.saving.register_keras_serializable(package="savedmodel_compat")
class TFSMLayer(SavedModelLayer):
    """A drop-in for `keras.layers.TFSMLayer`: the same arguments. It is saved with its SavedModel.

    Args:
      filepath: the folder of a SavedModel.
      call_endpoint: a signature, or a callable attribute of the model.
      call_training_endpoint: called while the model trains.
      trainable: whether its weights train.
      name, dtype: of the layer.

    Raises:
      FileNotFoundError, NotImplementedError, SavedModelError, ValueError: as `SavedModelLayer`.

    RFC: GOAL-12
    """

    def __init__(
        self,
        filepath: Union[str, os.PathLike[str], None],
        call_endpoint: Optional[str] = "serve",
        call_training_endpoint: Optional[str] = None,
        trainable: bool = True,
        name: Optional[str] = None,
        dtype: Any = None,
        **keywords: Any,
    ) -> None:
        super().__init__(
            filepath,
            call_endpoint,
            call_training_endpoint,
            trainable=trainable,
            name=name,
            dtype=dtype,
            **keywords,
        )

    def _always_dict(self) -> bool:
        return True  # keras.layers.TFSMLayer also returns the function's result unchanged

    def _endpoint(self, loaded: Any, name: Optional[str]) -> Endpoint:
        endpoint = super()._endpoint(loaded, name)
        endpoint.takes_training = (
            False  # keras.layers.TFSMLayer has one function for training and one for inference
        )
        return endpoint

    def _trains(self, training: Optional[bool]) -> bool:
        return bool(training)  # frozen or not

    def get_config(self) -> dict[str, Any]:
        """Return what the layer is made of, without the SavedModel."""
        config = super().get_config()
        endpoint, training = config.pop("endpoint"), config.pop("training_endpoint")
        return {**config, "call_endpoint": endpoint, "call_training_endpoint": training}
