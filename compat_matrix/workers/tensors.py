"""``savedmodel_common.tensors`` under the name that worker programs and plug-ins import.

Python 3.6 syntax.
"""

import sys

from savedmodel_common import tensors

sys.modules[__name__] = tensors
