"""The base of errors that are also instances of an error class of TensorFlow."""

from __future__ import annotations

import os
from typing import Any, Optional, Union

from reference_impl.errors import SavedModelError


class AlsoTensorFlowError(SavedModelError):
    """An error of this package that is also one of TensorFlow. A subclass names that class as its last base."""

    def __init__(
        self,
        reason: Optional[str],
        op: Any = None,
        message: Optional[str] = None,
        code: Optional[int] = None,
        *,
        file: Optional[Union[str, os.PathLike[str]]] = None,
        node: Optional[str] = None,
    ) -> None:
        # Keras makes a copy of an error of TensorFlow with its node, op, message and code, and adds the layer to the message.
        reason = str(message if reason is None else reason)
        theirs: Any = next(base for base in type(self).__mro__ if base.__module__.startswith("tensorflow."))
        theirs.__init__(self, None, None, reason)
        SavedModelError.__init__(self, reason, file=file, node=node)
