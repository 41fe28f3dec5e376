"""The private symbols of TensorFlow and Keras that `reference_impl` uses.

No module outside this package imports from `tensorflow.python`. Each entry states why the public
API is not enough, and which releases have the symbol (read from the wheels of 2.12, 2.15, 2.18 and
2.21). Other rooms use everything by the name of the package, in which no two modules define the
same name.

    lookup         a private symbol by the modules in which releases have it
    runtime        the eager runtime: its functions, its ops, its tapes
    functions      tf.function objects, concrete functions and their graphs
    signatures     the arguments of functions, as Python sees them
    type_specs     TypeSpecs: their classes by name, and their state
    variables      variables, and the shape and dtype behind a handle
    trackables     trackable objects: classes, dependencies, resources, content
    bases          base classes of loaded objects
    checkpointing  the values that the hooks of an object give to a checkpoint
    optimizers     the variables of optimizers, paired with those of a model
    keras          export data of Keras' models
    messages       messages of TensorFlow's classes and of ours, converted by their bytes
"""

from reference_impl.tensorflow_api.bases import *
from reference_impl.tensorflow_api.checkpointing import *
from reference_impl.tensorflow_api.functions import *
from reference_impl.tensorflow_api.keras import *
from reference_impl.tensorflow_api.messages import *
from reference_impl.tensorflow_api.optimizers import *
from reference_impl.tensorflow_api.runtime import *
from reference_impl.tensorflow_api.signatures import *
from reference_impl.tensorflow_api.trackables import *
from reference_impl.tensorflow_api.type_specs import *
from reference_impl.tensorflow_api.variables import *
