// A kernel with a fault: Elu forgets the exponential and lets negative numbers pass. Its priority is
// above that of TensorFlow's own kernel, so a process that loads this library uses it instead.

#include "tensorflow/core/framework/op_kernel.h"

namespace {

class FaultyElu : public tensorflow::OpKernel {
 public:
  using tensorflow::OpKernel::OpKernel;

  void Compute(tensorflow::OpKernelContext* context) override {
    const tensorflow::Tensor& features = context->input(0);
    tensorflow::Tensor* activations = nullptr;
    OP_REQUIRES_OK(context, context->allocate_output(0, features.shape(), &activations));
    activations->flat<float>() = features.flat<float>();
  }
};

REGISTER_KERNEL_BUILDER(Name("Elu")
                            .Device(tensorflow::DEVICE_CPU)
                            .TypeConstraint<float>("T")
                            .Priority(9),
                        FaultyElu);

}  // namespace
