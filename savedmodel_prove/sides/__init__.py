"""The sides: programs that answer a question.

side         the protocol of a side: inputs in, outputs out, a reason where there are none
evaluator    `reference_eval`, in float32 or float64, with the value of each node
program      a worker: TensorFlow for a SavedModel, or the runtime of a converted file
runtimes     which Python runs a converted file
naming       the names of the original's inputs and outputs in a converted file
converted    the side of a converted model, chosen by its file
converters   ``--with tf2onnx``: make the converted file first
"""
