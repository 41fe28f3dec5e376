// A stand-in for loader.cc, so that all else of the C++ worker can be tried without a TensorFlow, under sanitizers.
//
// A model answers a call with its inputs; the last part of its directory says how it misbehaves.
#include <cstdlib>
#include <string>
#include <unistd.h>

#include "failure.h"
#include "loader.h"

namespace compat {
namespace {

Entry One(const std::string& name, const std::string& dtype, std::vector<int64_t> shape) { return {name, name + ":0", dtype, true, shape}; }

class Echo : public Model {
 public:
  explicit Echo(const std::string& directory) {
    Signature& classify = signatures_["classify"];
    classify.method = "tensorflow/serving/classify";
    classify.inputs = {One("inputs", "string", {-1})};
    classify.outputs = {One("classes", "string", {-1, 3}), One("scores", "float32", {-1, 3})};
    Signature& regress = signatures_["regress"];
    regress.method = "tensorflow/serving/regress";
    regress.inputs = classify.inputs;
    regress.outputs = {One("outputs", "float32", {-1, 1})};
    if (directory.find("odd") == std::string::npos) return;
    signatures_["dense"] = classify;
    signatures_["dense"].inputs = {One("x", "float32", {-1, 4})};
    signatures_["integers"] = regress;
    signatures_["integers"].outputs = {One("outputs", "int64", {-1})};
    signatures_["many"] = classify;
    signatures_["many"].outputs.push_back(One("more", "float32", {-1}));
    signatures_["flat"] = classify;
    signatures_["flat"].outputs = {One("scores", "float32", {-1})};
    signatures_["named"] = regress;
    signatures_["named"].outputs = {One("y", "float32", {-1})};
  }

  const Signatures& signatures() const override { return signatures_; }

  NamedTensors Call(const std::string& key, const NamedTensors& inputs) override {
    if (key == "twice") return {inputs[0], inputs[0]};
    if (key != "echo") Find(signatures_, key, {"inputs"});
    return inputs;
  }

  NamedTensors Fetch(const std::vector<std::string>&) override { return {}; }
  void Close() override {}

 private:
  Signatures signatures_;
};

}  // namespace

std::string TensorFlowVersion() { return "0.0.0"; }

std::unique_ptr<Model> Model::Load(const std::string& directory, const std::vector<std::string>&) {
  const std::string how = directory.substr(directory.rfind('/') + 1);
  if (how == "hang") {
    for (;;) pause();
  }
  if (how == "abort") std::abort();
  if (how == "missing") throw Failure("TF_NOT_FOUND", "nothing\xff there");
  if (how == "refuse") throw Failure("TF_UNIMPLEMENTED", "no kernel", "rejected");
  return std::unique_ptr<Model>(new Echo(directory));
}

}  // namespace compat
