// Tensor files (docs/contracts.md, section 2): what compat_matrix/workers/tensors.py reads and writes. Knows no TensorFlow.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace compat {

// TensorFlow's dtype name, the shape, and the bytes of the carrier, or one string per element.
struct Tensor {
  std::string dtype;
  std::vector<int64_t> shape;
  std::string bytes;
  std::vector<std::string> strings;

  int64_t Count() const;
};

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The name of NumPy's type that carries a dtype, as a file writes it (`<u2`); nullptr for a dtype without values.
const char* Carrier(const std::string& dtype);
// Bytes of an element of that carrier.
int64_t CarrierSize(const char* carrier);

// Throws FileError; ValueError when the file contradicts itself.
NamedTensors LoadTensors(const std::string& path);
// Throws FileError; ValueError when a name comes twice.
void SaveTensors(const std::string& path, const NamedTensors& tensors);

}  // namespace compat
