"""The private symbols of TensorFlow and Keras that `reference_impl` uses.

No module outside this package imports from `tensorflow.python`. Each entry states why the public
API is not enough, and which releases have the symbol (read from the wheels of 2.12, 2.15, 2.18 and
2.21). Other rooms use everything by the name of the package, in which no two modules define the
same name.
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
