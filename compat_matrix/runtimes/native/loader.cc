#include "loader.h"

#include <cstdlib>
#include <map>
#include <unordered_set>

#include "tensorflow/c/c_api.h"
#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/framework/node_def_util.h"
#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/public/session.h"
#include "tensorflow_types.h"

namespace compat {
namespace {

class SessionModel : public Model {
 public:
  SessionModel(const std::string& directory, const std::vector<std::string>& tags) {
    const std::unordered_set<std::string> wanted(tags.begin(), tags.end());
    Check(tensorflow::LoadSavedModel(tensorflow::SessionOptions(), tensorflow::RunOptions(), directory, wanted, &bundle_));
    signatures_ = SignaturesOf(bundle_.meta_graph_def);
    for (const auto& node : bundle_.meta_graph_def.graph_def().node()) nodes_[node.name()] = &node;
  }

  const Signatures& signatures() const override { return signatures_; }

  NamedTensors Call(const std::string& key, const NamedTensors& inputs) override {
    std::vector<std::string> given, targets, names;
    for (const auto& input : inputs) given.push_back(input.first);
    const Signature& signature = Find(signatures_, key, given);
    std::map<std::string, std::string> tensor_of;
    for (const Entry& entry : signature.inputs) tensor_of[entry.name] = entry.tensor;
    // Two inputs may be one tensor; TensorFlow refuses to feed it twice. The last one is fed, as by a Python dict.
    std::map<std::string, const Tensor*> feed;
    for (const auto& input : inputs) feed[tensor_of[input.first]] = &input.second;
    for (const Entry& entry : signature.outputs) {
      targets.push_back(entry.tensor);
      names.push_back(entry.name);
    }
    return Run(feed, targets, names);
  }

  NamedTensors Fetch(const std::vector<std::string>& names) override { return Run({}, names, names); }

  void Close() override {
    nodes_.clear();
    if (bundle_.session) Check(bundle_.session->Close());
  }

 private:
  NamedTensors Run(const std::map<std::string, const Tensor*>& feed, const std::vector<std::string>& targets,
                   const std::vector<std::string>& names) {
    if (targets.empty()) return {};  // a signature without outputs; TensorFlow refuses to run nothing
    std::vector<std::pair<std::string, tensorflow::Tensor>> given;
    for (const auto& fed : feed) RequireTensor(fed.first);
    for (const std::string& target : targets) RequireTensor(target);
    for (const auto& fed : feed) given.emplace_back(fed.first, ToTensorFlow(*fed.second));
    std::vector<tensorflow::Tensor> results;
    Check(bundle_.session->Run(given, targets, {}, &results));
    NamedTensors out;
    for (size_t i = 0; i < results.size(); ++i) out.emplace_back(names[i], FromTensorFlow(results[i]));
    return out;
  }

  // A name that no node has is our error and not TensorFlow's, as in the C API, where it is looked up before it is run.
  void RequireTensor(const std::string& name) const {
    const size_t colon = name.find(':');
    const auto node = nodes_.find(name.substr(0, colon));
    bool found = node != nodes_.end();
    if (found && colon != std::string::npos) {
      const tensorflow::OpDef* op = nullptr;
      tensorflow::DataTypeVector types;
      // A call of a function in the graph's library has no OpDef here; the run says what is wrong with it.
      if (tensorflow::OpRegistry::Global()->LookUpOpDef(node->second->op(), &op).ok() &&
          tensorflow::OutputTypesForNode(*node->second, *op, &types).ok()) {
        found = std::strtoull(name.c_str() + colon + 1, nullptr, 10) < types.size();
      }
    }
    if (!found) throw KeyError("the graph has no tensor " + Repr(name));
  }

  tensorflow::SavedModelBundle bundle_;
  Signatures signatures_;
  std::map<std::string, const tensorflow::NodeDef*> nodes_;
};

}  // namespace

std::string TensorFlowVersion() { return TF_Version(); }

std::unique_ptr<Model> Model::Load(const std::string& directory, const std::vector<std::string>& tags) {
  return std::unique_ptr<Model>(new SessionModel(directory, tags));
}

}  // namespace compat
