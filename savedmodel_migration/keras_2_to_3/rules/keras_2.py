"""The layers that Keras 2 had, by the release that brought them.

A class of another name is one of the user's own.

Keras 3 has layers that no Keras 2 had, as `MixUp` or `RMSNormalization`. A class of such a name in
a SavedModel is not one of them.
"""

from __future__ import annotations

import re

# Those of 2.0 to 2.6. Exported by the packages keras 2.6 to 2.15, which get no more releases;
# tf_keras adds none.
_ALL = """
    Activation ActivityRegularization Add AdditiveAttention AlphaDropout Attention Average
    AveragePooling1D AveragePooling2D AveragePooling3D BatchNormalization Bidirectional
    CategoryEncoding CenterCrop Concatenate Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D
    Conv3DTranspose ConvLSTM1D ConvLSTM2D ConvLSTM3D Cropping1D Cropping2D Cropping3D Dense
    DepthwiseConv2D Discretization Dot Dropout ELU EinsumDense Embedding Flatten GRU GRUCell
    GaussianDropout GaussianNoise GlobalAveragePooling1D GlobalAveragePooling2D
    GlobalAveragePooling3D GlobalMaxPooling1D GlobalMaxPooling2D GlobalMaxPooling3D Hashing
    InputLayer IntegerLookup LSTM LSTMCell LayerNormalization LeakyReLU Masking MaxPooling1D
    MaxPooling2D MaxPooling3D Maximum Minimum MultiHeadAttention Multiply Normalization PReLU
    Permute RNN RandomContrast RandomCrop RandomFlip RandomRotation RandomTranslation RandomZoom
    ReLU RepeatVector Rescaling Reshape Resizing SeparableConv1D SeparableConv2D SimpleRNN
    SimpleRNNCell Softmax SpatialDropout1D SpatialDropout2D SpatialDropout3D StackedRNNCells
    StringLookup Subtract TextVectorization TimeDistributed UpSampling1D UpSampling2D UpSampling3D
    ZeroPadding1D ZeroPadding2D ZeroPadding3D
"""
_SINCE = {
    "MultiHeadAttention": (2, 4), "DepthwiseConv1D": (2, 7), "HashedCrossing": (2, 8),
    "RandomBrightness": (2, 9), "UnitNormalization": (2, 9), "GroupNormalization": (2, 11),
    "Identity": (2, 12), "SpectralNormalization": (2, 13),
}  # fmt: skip
# Layers of Keras that are not made by their name: bases, and those that run or load what their
# arguments say.
NEVER_BY_NAME = (
    "Layer",
    "Wrapper",
    "Lambda",
    "TFSMLayer",
    "TorchModuleWrapper",
    "JaxLayer",
    "FlaxLayer",
    "Pipeline",
)
LAYERS = frozenset({*_ALL.split(), *_SINCE})


def had(name: str, tensorflow: str) -> bool:
    """Return whether the Keras of a release of TensorFlow had a layer, or would have had it if the
    release is not known.
    """
    release = re.match(r"(\d+)\.(\d+)", tensorflow)
    if release is None or name not in _SINCE:
        return name in LAYERS or name in NEVER_BY_NAME
    return (int(release[1]), int(release[2])) >= _SINCE[name]
