"""Write the only signature of a SavedModel as OpenVINO IR: MODEL TAGS FILE.

TensorFlow is not needed. Weights keep their precision: OpenVINO rounds them to float16 by default.
"""

import sys

import openvino
from openvino import frontend


def main():
    model, tags, out = sys.argv[1:]
    tensorflow = frontend.FrontEndManager().load_by_framework("tf")
    converted = tensorflow.convert(tensorflow.load([model, tags]))
    openvino.save_model(converted, out, compress_to_fp16=False)


if __name__ == "__main__":
    main()
