// The C++ loader: tensorflow::LoadSavedModel and Session::Run. The only header of ours that stands for TensorFlow.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "npz.h"
#include "signatures.h"

namespace compat {

// What TensorFlow says of its own version.
std::string TensorFlowVersion();

// A loaded MetaGraph. Every method throws Failure: a status that is not OK has its code's name as the error class.
class Model {
 public:
  static std::unique_ptr<Model> Load(const std::string& directory, const std::vector<std::string>& tags);
  virtual ~Model() = default;

  virtual const Signatures& signatures() const = 0;
  // The outputs of the signature `key` for `inputs`, in the order of their names.
  virtual NamedTensors Call(const std::string& key, const NamedTensors& inputs) = 0;
  // The tensors called `names` of the main graph.
  virtual NamedTensors Fetch(const std::vector<std::string>& names) = 0;
  virtual void Close() = 0;
};

}  // namespace compat
