"""A stand-in for ``tensorflow_model_server``: TensorFlow Serving's gRPC and REST API on the C API
of a TensorFlow wheel.

It exists to test our client and drivers where no image can be pulled, and to check a model at the
level of the protocol. Reports name it ``standin``, never ``tensorflow-serving``. Run by the Python
of a TensorFlow runtime: it needs that wheel's libraries, grpcio, protobuf and NumPy, and never
imports tensorflow.

    python -m savedmodel_standin serve --port=8500 --rest_api_port=8501 --model_name=m
    --model_base_path=/models/m
    python -m savedmodel_standin executable PATH     # a tensorflow_model_server to hand
                                                                to a driver
    python -m savedmodel_servers.commands.standin_image          # the container image

docs/evidence/real_servers.md lists the differences from the real server. Unsupported features are
refused, or reported in the log. ``faults.py`` has the faults that tests request by environment
variables.
"""

NAME = "standin"
LABEL = "savedmodel-compat.standin"  # of an image; its value is the version of TensorFlow inside
REPOSITORY = "savedmodel-compat-standin"
