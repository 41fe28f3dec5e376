"""SavedModels as Keras 3 layers: `SavedModelLayer`, and drop-ins for `hub.KerasLayer` and
`keras.layers.TFSMLayer`.
"""

from savedmodel_compat.keras.drop_ins import KerasLayer, TFSMLayer
from savedmodel_compat.keras.layer import SavedModelLayer

__all__ = ["KerasLayer", "SavedModelLayer", "TFSMLayer"]
