#include "signatures.h"

#include <algorithm>

#include "failure.h"

namespace compat {
namespace {

constexpr int kRefOffset = 100;  // DT_FLOAT_REF = DT_FLOAT + 100
const char kClassify[] = "tensorflow/serving/classify", kRegress[] = "tensorflow/serving/regress";

const std::vector<std::string>& DtypeNames() {
  static const std::vector<std::string> names = {
      "invalid", "float32", "float64", "int32", "uint8", "int16", "int8", "string", "complex64", "int64", "bool", "qint8",
      "quint8", "qint32", "bfloat16", "qint16", "quint16", "uint16", "complex128", "float16", "resource", "variant", "uint32",
      "uint64", "float8_e5m2", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e4m3b11fnuz", "float8_e5m2fnuz", "int4", "uint4",
      "int2", "uint2"};
  return names;
}

Json DescribeSide(const std::vector<Entry>& entries) {
  Json out = Json::Object();
  for (const Entry& entry : entries) {
    Json info = Json::Object(), shape;
    if (entry.known_rank) shape = Json::Array();
    for (int64_t size : entry.shape) shape.Push(size);
    info.Set("dtype", entry.dtype);
    info.Set("shape", shape);
    out.Set(entry.name, info);
  }
  return out;
}

std::vector<std::string> Names(const std::vector<Entry>& entries) {
  std::vector<std::string> out;
  for (const Entry& entry : entries) out.push_back(entry.name);
  std::sort(out.begin(), out.end());
  return out;
}

const Entry* Named(const std::vector<Entry>& entries, const std::string& name) {
  for (const Entry& entry : entries) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

// Whether a tensor of this shape may have `sizes` (-1: any). What the SignatureDef leaves open is left to the run.
bool MayBe(const Entry& entry, const std::vector<int64_t>& sizes) {
  if (!entry.known_rank) return true;
  if (entry.shape.size() != sizes.size()) return false;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] >= 0 && entry.shape[i] >= 0 && entry.shape[i] != sizes[i]) return false;
  }
  return true;
}

std::string CheckInput(const Signature& signature) {
  const Entry* input = Named(signature.inputs, "inputs");
  if (!input || signature.inputs.size() != 1) {
    return "its one input must be called 'inputs', it takes " + Repr(Names(signature.inputs));
  }
  // Serving feeds a vector of serialized tf.Examples, whatever the SignatureDef says.
  if (input->dtype != "string") return "its input is " + input->dtype + ", Serving feeds serialized examples (string)";
  if (!MayBe(*input, {-1})) return "its input has " + std::to_string(input->shape.size()) + " dimensions, Serving feeds a vector";
  return "";
}

std::string CheckClassify(const Signature& signature) {
  const Entry *classes = Named(signature.outputs, "classes"), *scores = Named(signature.outputs, "scores");
  if (signature.outputs.empty() || signature.outputs.size() > 2) {
    return "it has " + std::to_string(signature.outputs.size()) + " outputs, one or two are allowed";
  }
  if (!classes && !scores) return "it has neither an output 'classes' nor 'scores': " + Repr(Names(signature.outputs));
  if (classes && classes->dtype != "string") return "its output 'classes' is " + classes->dtype + ", not string";
  if (scores && scores->dtype != "float32") return "its output 'scores' is " + scores->dtype + ", not float32";
  for (const Entry* output : {classes, scores}) {
    if (output && !MayBe(*output, {-1, -1})) return "its output " + Repr(output->name) + " is not [batch, classes]";
  }
  return "";
}

std::string CheckRegress(const Signature& signature) {
  const Entry* outputs = Named(signature.outputs, "outputs");
  if (!outputs || signature.outputs.size() != 1) {
    return "its one output must be called 'outputs', it has " + Repr(Names(signature.outputs));
  }
  if (outputs->dtype != "float32") return "its output is " + outputs->dtype + ", not float32";
  if (!MayBe(*outputs, {-1}) && !MayBe(*outputs, {-1, 1})) return "its output is neither [batch] nor [batch, 1]";
  return "";
}

}  // namespace

bool IsInternal(const std::string& key) { return key == "__saved_model_init_op" || key == "__saved_model_train_op"; }

std::string DtypeName(int number) {
  const std::vector<std::string>& names = DtypeNames();
  const size_t index = static_cast<size_t>(number > kRefOffset ? number - kRefOffset : number);
  return number >= 0 && index < names.size() ? names[index] : names[0];
}

int DtypeNumber(const std::string& name) {
  const std::vector<std::string>& names = DtypeNames();
  const auto found = std::find(names.begin(), names.end(), name);
  return found == names.end() ? 0 : static_cast<int>(found - names.begin());
}

Json Describe(const Signatures& signatures) {
  Json out = Json::Object();
  for (const auto& named : signatures) {
    const Signature& signature = named.second;
    Json info = Json::Object();
    info.Set("inputs", DescribeSide(signature.inputs));
    info.Set("outputs", DescribeSide(signature.outputs));
    if (signature.method == kClassify || signature.method == kRegress) {
      const std::string reason = Unconventional(signature);
      Json method = Json::Object();
      method.Set("name", signature.method);
      method.Set("conventional", reason.empty());
      method.Set("reason", reason.empty() ? Json() : Json(reason));
      info.Set("method", method);
    }
    out.Set(named.first, info);
  }
  return out;
}

const Signature& Find(const Signatures& signatures, const std::string& key, const std::vector<std::string>& inputs) {
  const auto found = signatures.find(key);
  if (found == signatures.end()) {
    std::vector<std::string> keys;
    for (const auto& named : signatures) keys.push_back(named.first);
    throw KeyError("no signature " + Repr(key) + "; there are " + Repr(keys));
  }
  std::vector<std::string> unknown;
  for (const std::string& name : inputs) {
    if (!Named(found->second.inputs, name)) unknown.push_back(name);
  }
  if (unknown.empty()) return found->second;
  const std::string first = *std::min_element(unknown.begin(), unknown.end());
  throw ValueError("the signature " + Repr(key) + " has no input " + first + "; there are " + Repr(Names(found->second.inputs)));
}

std::string Unconventional(const Signature& signature) {
  const std::string input = CheckInput(signature);
  if (!input.empty()) return input;
  return signature.method == kClassify ? CheckClassify(signature) : CheckRegress(signature);
}

}  // namespace compat
