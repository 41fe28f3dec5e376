// From TensorFlow's types to ours and back. Everything here is inline: only loader.cc includes TensorFlow, which takes most of
// the time of a build.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "failure.h"
#include "npz.h"
#include "signatures.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/types.h"
#include "tensorflow/core/protobuf/meta_graph.pb.h"

namespace compat {

// The text of a status, whose accessor was renamed on the way to absl::Status.
template <typename Status>
auto MessageOf(const Status& status, int) -> decltype(std::string(status.message())) {
  return std::string(status.message());
}
template <typename Status>
std::string MessageOf(const Status& status, long) {
  return std::string(status.error_message());
}

// Throws what the C API calls the same status; UNIMPLEMENTED is the code made for refusing.
template <typename Status>
void Check(const Status& status) {
  static const char* const kCodes[] = {
      "OK",        "CANCELLED", "UNKNOWN",      "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
      "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED",
      "INTERNAL",  "UNAVAILABLE", "DATA_LOSS",  "UNAUTHENTICATED"};
  if (status.ok()) return;
  const unsigned code = static_cast<unsigned>(status.code());
  const bool known = code < sizeof(kCodes) / sizeof(*kCodes);
  const std::string name = known ? kCodes[code] : "CODE_" + std::to_string(code);
  throw Failure("TF_" + name, MessageOf(status, 0), name == "UNIMPLEMENTED" ? "rejected" : "error");
}

inline tensorflow::Tensor ToTensorFlow(const Tensor& tensor) {
  const int number = DtypeNumber(tensor.dtype);
  if (!number || !tensorflow::DataType_IsValid(number)) throw TypeError("this TensorFlow has no dtype " + Repr(tensor.dtype));
  const auto dtype = static_cast<tensorflow::DataType>(number);
  const int64_t count = tensor.Count();  // also checks that the shape can be
  const bool text = dtype == tensorflow::DT_STRING;
  if (!text && static_cast<uint64_t>(tensorflow::DataTypeSize(dtype)) * static_cast<uint64_t>(count) != tensor.bytes.size()) {
    throw TypeError("this TensorFlow does not hold " + tensor.dtype + " as the file does");
  }
  tensorflow::TensorShape shape;
  for (int64_t size : tensor.shape) shape.AddDim(size);
  tensorflow::Tensor out(dtype, shape);
  if (!out.IsInitialized() && count > 0) throw Failure("MemoryError", "no memory for a tensor of " + tensor.dtype);
  if (text) {
    auto flat = out.flat<tensorflow::tstring>();
    for (int64_t i = 0; i < count; ++i) {
      const std::string& item = tensor.strings[static_cast<size_t>(i)];
      flat(i).assign(item.data(), item.size());
    }
  } else if (!tensor.bytes.empty()) {
    std::memcpy(const_cast<char*>(out.tensor_data().data()), tensor.bytes.data(), tensor.bytes.size());
  }
  return out;
}

inline Tensor FromTensorFlow(const tensorflow::Tensor& tensor) {
  Tensor out;
  out.dtype = DtypeName(tensor.dtype());
  for (int i = 0; i < tensor.dims(); ++i) out.shape.push_back(tensor.dim_size(i));
  if (tensor.dtype() == tensorflow::DT_STRING) {
    const auto flat = tensor.flat<tensorflow::tstring>();
    for (int64_t i = 0; i < flat.size(); ++i) out.strings.emplace_back(flat(i).data(), flat(i).size());
    return out;
  }
  const char* carrier = Carrier(out.dtype);
  if (!carrier) throw TypeError("a tensor of " + out.dtype + " has no value to show");
  if (tensor.NumElements() > 0) out.bytes.assign(tensor.tensor_data().data(), tensor.tensor_data().size());
  if (out.bytes.size() != static_cast<size_t>(tensor.NumElements() * CarrierSize(carrier))) {
    throw ValueError("a tensor of " + out.dtype + " of " + std::to_string(out.bytes.size()) + " bytes");
  }
  return out;
}

// Appends what a TensorInfo is fed or fetched as; see signature_wire.py.
inline void AppendEntries(const std::string& name, const tensorflow::TensorInfo& info, std::vector<Entry>* out) {
  const std::string dtype = DtypeName(info.dtype());
  const bool known = !info.tensor_shape().unknown_rank();
  std::vector<int64_t> shape;
  for (const auto& dim : info.tensor_shape().dim()) {
    if (known) shape.push_back(dim.size());
  }
  if (info.has_coo_sparse()) {
    const auto& sparse = info.coo_sparse();
    const int64_t rank = known ? static_cast<int64_t>(shape.size()) : -1;
    out->push_back({name + "/values", sparse.values_tensor_name(), dtype, true, {-1}});
    out->push_back({name + "/indices", sparse.indices_tensor_name(), "int64", true, {-1, rank}});
    out->push_back({name + "/dense_shape", sparse.dense_shape_tensor_name(), "int64", true, {rank}});
  } else if (info.has_composite_tensor()) {
    std::vector<Entry> parts;
    for (const auto& part : info.composite_tensor().components()) AppendEntries("", part, &parts);
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i].name = name + "/component_" + std::to_string(i);
      out->push_back(parts[i]);
    }
  } else {
    out->push_back({name, info.name(), dtype, known, shape});
  }
}

inline Signatures SignaturesOf(const tensorflow::MetaGraphDef& meta_graph) {
  Signatures out;
  for (const auto& named : meta_graph.signature_def()) {
    if (IsInternal(named.first)) continue;
    Signature& signature = out[named.first];
    signature.method = named.second.method_name();
    const auto fill = [](const google::protobuf::Map<std::string, tensorflow::TensorInfo>& infos, std::vector<Entry>* entries) {
      // A map of ours, since protobuf's has no order.
      std::map<std::string, const tensorflow::TensorInfo*> sorted;
      for (const auto& info : infos) sorted[info.first] = &info.second;
      for (const auto& info : sorted) AppendEntries(info.first, *info.second, entries);
    };
    fill(named.second.inputs(), &signature.inputs);
    fill(named.second.outputs(), &signature.outputs);
  }
  return out;
}

}  // namespace compat
