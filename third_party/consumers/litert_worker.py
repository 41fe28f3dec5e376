"""LiteRT, the runtime beside TensorFlow: the interpreter of `ai-edge-litert` on what TensorFlow's
converter made.
"""

import importlib.metadata

import tflite_worker
from ai_edge_litert.interpreter import Interpreter
from savedmodel_compat_workers import protocol


class LiteRTWorker(tflite_worker.TFLiteWorker):
    """As :class:`tflite_worker.TFLiteWorker`, with another interpreter."""

    name = "litert"
    Interpreter = Interpreter
    version = importlib.metadata.version("ai-edge-litert")


if __name__ == "__main__":
    protocol.serve(LiteRTWorker)
