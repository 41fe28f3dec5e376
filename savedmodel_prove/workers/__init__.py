"""Programs that run a converted file, each in the Python of its runtime.

They speak the worker protocol, with one more operation: ``values`` saves the intermediate values of
a call by the names of the file.

file_worker          what they share
tensorflow_worker    TensorFlow on a SavedModel
onnx_file_worker     onnxruntime
tflite_file_worker   LiteRT
keras_file_worker    Keras 3
openvino_file_worker OpenVINO
stablehlo_file_worker XLA on a StableHLO module
convert_tflite       the converter of TensorFlow Lite, which is not a worker
convert_openvino     the converter of OpenVINO, which is not a worker
"""
