"""Write an ONNX file as OpenVINO IR: ``python make_ir.py MODEL.onnx FOLDER``.

`wrong.xml` has its constants rounded to float16, as OpenVINO does by default.
"""

import pathlib
import sys

import openvino


def main():
    model, folder = openvino.convert_model(sys.argv[1]), pathlib.Path(sys.argv[2])
    openvino.save_model(model, folder / "model.xml", compress_to_fp16=False)
    openvino.save_model(model, folder / "wrong.xml", compress_to_fp16=True)


if __name__ == "__main__":
    main()
