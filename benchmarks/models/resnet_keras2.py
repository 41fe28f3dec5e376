"""ResNet50 as Keras 2 saves it after a step of training: functions of all layers, compiled metrics,
the optimizer's slots.
"""

import sys

import numpy as np
import tf_keras

if __name__ == "__main__":
    tf_keras.utils.set_random_seed(1)
    model = tf_keras.applications.ResNet50(weights=None)
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(np.random.rand(1, 224, 224, 3).astype("float32"), np.zeros(1), verbose=0)
    model.save(sys.argv[1], save_format="tf")
