// SignatureDefs as they are fed and fetched (the rules of compat_matrix/workers/signature_wire.py), and the conventions that
// TF Serving has for two method names. Knows no TensorFlow.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "json.h"

namespace compat {

// A sparse or composite input or output is several entries. A dimension of -1 is unknown.
struct Entry {
  std::string name, tensor, dtype;
  bool known_rank;
  std::vector<int64_t> shape;
};

struct Signature {
  std::string method;  // method_name: "tensorflow/serving/predict", ...
  std::vector<Entry> inputs, outputs;
};

using Signatures = std::map<std::string, Signature>;

// Keys that hold the initialisation and training op, not something to call.
bool IsInternal(const std::string& key);

// The name of a DataType's number, that of the value for a reference; "invalid" for a number nobody knows.
std::string DtypeName(int number);
// The number of a name, 0 for none.
int DtypeNumber(const std::string& name);

// The reply to the operation `signatures`. A member `method` is there for the names that Serving treats in its own way.
Json Describe(const Signatures& signatures);

// The signature called `key`, which must take `inputs`. Throws KeyError, ValueError.
const Signature& Find(const Signatures& signatures, const std::string& key, const std::vector<std::string>& inputs);

// Why TF Serving's Classify or Regress would refuse a signature with such a method name; empty when it would not.
std::string Unconventional(const Signature& signature);

}  // namespace compat
