// The C++ loader, tensorflow::LoadSavedModel and Session::Run, behind the messages that it is asked with.
//
// A request is a tensorflow.RunStepRequest: `target` holds the operation and its arguments, `session_handle` names the model,
// `feed` and `fetch` are what Session::Run takes. The answer is a tensorflow.RunStepResponse with TensorFlow's status in it.
//
//   hello                  the tensors "tensorflow" and "compiler": versions
//   load DIRECTORY TAGS... the tensor "meta_graph": a serialized MetaGraphDef that holds the signatures and nothing else
//   run                    the tensors that were fetched, in that order; or "missing": a name that is not in the graph
//   close
#pragma once

#include <map>
#include <memory>
#include <string>

#include "tensorflow/core/protobuf/master.pb.h"

namespace compat {

class Model;

class Loader {
 public:
  Loader();
  ~Loader();
  // Never throws for what the request or the model made go wrong.
  void Answer(const tensorflow::RunStepRequest& request, tensorflow::RunStepResponse* response);

 private:
  void Dispatch(const tensorflow::RunStepRequest& request, tensorflow::RunStepResponse* response);

  std::map<std::string, std::unique_ptr<Model>> models_;
};

}  // namespace compat
