"""The worker of TensorFlow in a process whose TensorFlow has a faulty kernel."""

import os
import sys

sys.path.insert(0, os.environ["WORKERS"])
import tensorflow_worker

IMPORTS = ("tensorflow",)


class FaultyTensorFlowWorker(tensorflow_worker.TensorFlowWorker):
    """Loads the library with the kernel before any model."""

    def __init__(self):
        super().__init__()
        self.tf.load_op_library(os.environ["FAULTY_KERNEL"])


if __name__ == "__main__":
    tensorflow_worker.file_worker.protocol.serve(FaultyTensorFlowWorker)
