#include "loader.h"

#include <cstdlib>
#include <unordered_set>
#include <vector>

#include "tensorflow/c/c_api.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor.pb.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/public/session.h"

namespace compat {
namespace {

using tensorflow::RunStepRequest;
using tensorflow::RunStepResponse;

enum Code { kUnknown = 2, kInvalidArgument = 3, kResourceExhausted = 8, kUnimplemented = 12 };  // of tensorflow.error.Code

struct Failure {
  int code;
  std::string message;
};

// The text of a status, whose accessor was renamed on the way to absl::Status.
template <typename Status>
auto MessageOf(const Status& status, int) -> decltype(std::string(status.message())) {
  return std::string(status.message());
}
template <typename Status>
std::string MessageOf(const Status& status, long) {
  return std::string(status.error_message());
}

template <typename Status>
void Check(const Status& status) {
  if (!status.ok()) throw Failure{static_cast<int>(status.code()), MessageOf(status, 0)};
}

void Add(const std::string& name, const std::string& value, RunStepResponse* response) {
  tensorflow::NamedTensorProto* added = response->add_tensor();
  added->set_name(name);
  added->mutable_tensor()->set_dtype(tensorflow::DT_STRING);
  added->mutable_tensor()->mutable_tensor_shape();
  added->mutable_tensor()->add_string_val(value);
}

}  // namespace

class Model {
 public:
  explicit Model(const RunStepRequest& request) {
    const std::unordered_set<std::string> tags(request.target().begin() + 2, request.target().end());
    Check(tensorflow::LoadSavedModel(tensorflow::SessionOptions(), tensorflow::RunOptions(), request.target(1), tags, &bundle_));
    for (const auto& node : bundle_.meta_graph_def.graph_def().node()) nodes_[node.name()] = &node;
  }

  std::string Signatures() const {
    tensorflow::MetaGraphDef only;
    *only.mutable_signature_def() = bundle_.meta_graph_def.signature_def();
    return only.SerializeAsString();
  }

  void Run(const RunStepRequest& request, RunStepResponse* response) {
    std::vector<std::string> wanted(request.fetch().begin(), request.fetch().end());
    for (const auto& fed : request.feed()) {
      if (!Has(fed.name())) return Add("missing", fed.name(), response);
    }
    for (const std::string& name : wanted) {
      if (!Has(name)) return Add("missing", name, response);
    }
    std::vector<std::pair<std::string, tensorflow::Tensor>> given;
    for (const auto& fed : request.feed()) {
      given.emplace_back(fed.name(), tensorflow::Tensor());
      if (!given.back().second.FromProto(fed.tensor())) {
        throw Failure{kInvalidArgument, "this TensorFlow does not take the tensor that is fed to " + fed.name()};
      }
    }
    std::vector<tensorflow::Tensor> results;
    Check(bundle_.session->Run(given, wanted, {}, &results));
    for (size_t i = 0; i < results.size(); ++i) Show(wanted[i], results[i], response->add_tensor());
  }

  void Close() {
    if (bundle_.session) Check(bundle_.session->Close());
  }

 private:
  static void Show(const std::string& name, const tensorflow::Tensor& tensor, tensorflow::NamedTensorProto* shown) {
    shown->set_name(name);
    const bool valueless = tensor.dtype() == tensorflow::DT_RESOURCE || tensor.dtype() == tensorflow::DT_VARIANT;
    if (valueless) {
      shown->mutable_tensor()->set_dtype(tensor.dtype());
    } else if (tensor.dtype() == tensorflow::DT_STRING) {
      tensor.AsProtoField(shown->mutable_tensor());
    } else {
      tensor.AsProtoTensorContent(shown->mutable_tensor());
    }
  }

  // A name that no node has is the caller's error and not TensorFlow's, as in the C API, where it is looked up before it is run.
  bool Has(const std::string& name) const {
    const size_t colon = name.find(':');
    const auto node = nodes_.find(name.substr(0, colon));
    if (node == nodes_.end() || colon == std::string::npos) return node != nodes_.end();
    const tensorflow::OpDef* op = nullptr;
    tensorflow::DataTypeVector types;
    // A call of a function in the graph's library has no OpDef here; the run says what is wrong with it.
    const bool known = tensorflow::OpRegistry::Global()->LookUpOpDef(node->second->op(), &op).ok() &&
                       tensorflow::OutputTypesForNode(*node->second, *op, &types).ok();
    return !known || std::strtoull(name.c_str() + colon + 1, nullptr, 10) < types.size();
  }

  tensorflow::SavedModelBundle bundle_;
  std::map<std::string, const tensorflow::NodeDef*> nodes_;
};

Loader::Loader() = default;
Loader::~Loader() = default;

void Loader::Answer(const RunStepRequest& request, RunStepResponse* response) {
  Failure failure{0, ""};
  try {
    return Dispatch(request, response);
  } catch (const Failure& error) {
    failure = error;
  } catch (const std::bad_alloc&) {
    failure = {kResourceExhausted, "no memory"};
  } catch (const std::exception& error) {
    failure = {kUnknown, error.what()};
  }
  response->Clear();
  response->set_status_code(static_cast<decltype(response->status_code())>(failure.code));
  response->set_status_error_message(failure.message);
}

void Loader::Dispatch(const RunStepRequest& request, RunStepResponse* response) {
  const std::string operation = request.target_size() ? request.target(0) : "", &handle = request.session_handle();
  const auto found = models_.find(handle);
  if (operation == "hello") {
    Add("tensorflow", TF_Version(), response);
    Add("compiler", __VERSION__, response);
  } else if (operation == "load" && request.target_size() > 1) {
    std::unique_ptr<Model> model(new Model(request));
    Add("meta_graph", model->Signatures(), response);
    models_[handle] = std::move(model);
  } else if (found == models_.end()) {
    throw Failure{kUnimplemented, "no operation " + operation + " of a model " + handle};
  } else if (operation == "run") {
    found->second->Run(request, response);
  } else {
    const std::unique_ptr<Model> closed = std::move(found->second);
    models_.erase(found);
    closed->Close();
  }
}

}  // namespace compat
