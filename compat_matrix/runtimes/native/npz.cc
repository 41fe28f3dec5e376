#include "npz.h"

#include <cstdlib>
#include <cstring>
#include <map>
#include <set>

#include "failure.h"
#include "json.h"
#include "zip.h"

namespace compat {
namespace {

constexpr size_t kMaxMeta = 1 << 24;
constexpr size_t kMaxRank = 254;  // of a TensorShape

const std::map<std::string, const char*>& Carriers() {
  static const std::map<std::string, const char*> table = {
      {"float16", "<f2"},         {"float32", "<f4"},          {"float64", "<f8"},       {"int8", "|i1"},
      {"int16", "<i2"},           {"int32", "<i4"},            {"int64", "<i8"},         {"uint8", "|u1"},
      {"uint16", "<u2"},          {"uint32", "<u4"},           {"uint64", "<u8"},        {"complex64", "<c8"},
      {"complex128", "<c16"},     {"bool", "|b1"},             {"bfloat16", "<u2"},      {"qint8", "|i1"},
      {"quint8", "|u1"},          {"qint16", "<i2"},           {"quint16", "<u2"},       {"qint32", "<i4"},
      {"float8_e5m2", "|u1"},     {"float8_e4m3fn", "|u1"},    {"float8_e4m3fnuz", "|u1"}, {"float8_e4m3b11fnuz", "|u1"},
      {"float8_e5m2fnuz", "|u1"}, {"int4", "|i1"},             {"uint4", "|u1"},         {"int2", "|i1"},
      {"uint2", "|u1"},           {"float4_e2m1fn", "|u1"},
  };
  return table;
}

// The array in a .npy file: its type, its shape, and where its bytes are.
struct Array {
  std::string descr;
  std::vector<int64_t> shape;
  std::string bytes;
};

// The number of elements. Throws ValueError when even the sizes that are not 0 multiply to more than 62 bits.
int64_t Elements(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  bool empty = false;
  for (int64_t size : shape) {
    if (size < 0) throw ValueError("a negative dimension");
    empty = empty || size == 0;
    if (size > 1 && product > (int64_t{1} << 62) / size) throw ValueError("a shape of more elements than can be");
    if (size > 1) product *= size;
  }
  return empty ? 0 : product;
}

// What stands behind `'key':` in the header's dictionary literal.
size_t FindKey(const std::string& header, const std::string& key) {
  const size_t found = header.find("'" + key + "':");
  if (found == std::string::npos) throw ValueError("a .npy header without " + key);
  const size_t start = header.find_first_not_of(' ', found + key.size() + 3);
  if (start == std::string::npos) throw ValueError("a .npy header without a value of " + key);
  return start;
}

std::vector<int64_t> ParseShape(const std::string& header) {
  size_t position = FindKey(header, "shape");
  std::vector<int64_t> out;
  if (header[position++] != '(') throw ValueError("a .npy header without a shape");
  for (;;) {
    position = header.find_first_not_of(" ,", position);
    if (position == std::string::npos) throw ValueError("a .npy header whose shape does not end");
    if (header[position] == ')') return out;
    const size_t end = header.find_first_not_of("0123456789", position);
    if (end == position || end == std::string::npos || end - position > 18 || out.size() >= kMaxRank) {
      throw ValueError("a .npy header with a shape that is none");
    }
    out.push_back(std::strtoll(header.c_str() + position, nullptr, 10));
    position = end;
  }
}

Array ParseArray(const std::string& data) {
  static const char kMagic[] = "\x93NUMPY";
  if (data.size() < 12 || data.compare(0, 6, kMagic, 6) != 0) throw ValueError("no .npy file");
  const int version = data[6], prefix = version == 1 ? 10 : 12;
  if (version < 1 || version > 3) throw ValueError("a .npy file of an unknown version");
  uint64_t size = 0;
  for (int i = 8; i < prefix; ++i) size |= static_cast<uint64_t>(static_cast<unsigned char>(data[i])) << (8 * (i - 8));
  if (size > data.size() - prefix) throw ValueError("a .npy header that ends behind the file");
  const std::string header = data.substr(prefix, size);
  Array out;
  const size_t start = FindKey(header, "descr");
  const size_t end = header.find('\'', start + 1);
  if (header[start] != '\'' || end == std::string::npos) throw ValueError("an array of a type that is no tensor's");
  out.descr = header.substr(start + 1, end - start - 1);
  if (header.compare(FindKey(header, "fortran_order"), 5, "False") != 0) throw ValueError("an array in Fortran order");
  out.shape = ParseShape(header);
  const int64_t item = CarrierSize(out.descr.c_str()), count = Elements(out.shape);
  if (item == 0) throw ValueError("an array of " + Repr(out.descr) + ", which is no tensor's type");
  const uint64_t left = data.size() - prefix - size;
  const bool fits = static_cast<uint64_t>(count) == left / item && left % item == 0;
  if (!fits) throw ValueError("an array of another size than its shape");
  out.bytes = data.substr(prefix + size);
  return out;
}

std::string ShapeText(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
  return out + (shape.size() == 1 ? ",)" : ")");
}

std::string FormatArray(const char* descr, const std::vector<int64_t>& shape, const std::string& bytes) {
  std::string header = "{'descr': '" + std::string(descr) + "', 'fortran_order': False, 'shape': " + ShapeText(shape) + ", }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string out("\x93NUMPY\x01\x00", 8);
  out += static_cast<char>(header.size() & 0xFF);
  out += static_cast<char>(header.size() >> 8);
  return out + header + bytes;
}

// `bytes` cut at the int64 `offsets`; one more than elements, from 0 to the end, in order.
std::vector<std::string> Split(const std::string& bytes, const Array& offsets, int64_t count) {
  const std::string wrong = "string offsets do not fit the data";
  if (offsets.descr != "<i8" || offsets.shape.size() != 1 || offsets.shape[0] - 1 != count) throw ValueError(wrong);
  std::vector<int64_t> bounds(static_cast<size_t>(count) + 1);
  std::memcpy(bounds.data(), offsets.bytes.data(), offsets.bytes.size());
  if (bounds.front() != 0 || bounds.back() != static_cast<int64_t>(bytes.size())) throw ValueError(wrong);
  std::vector<std::string> out;
  for (size_t i = 0; i + 1 < bounds.size(); ++i) {
    if (bounds[i] < 0 || bounds[i] > bounds[i + 1] || bounds[i + 1] > bounds.back()) throw ValueError(wrong);
    out.push_back(bytes.substr(static_cast<size_t>(bounds[i]), static_cast<size_t>(bounds[i + 1] - bounds[i])));
  }
  return out;
}

Tensor ReadTensor(const ZipReader& archive, const std::string& key, const std::string& name, const Json& entry) {
  Tensor out;
  out.dtype = entry.At("dtype").String();
  for (const Json& size : entry.At("shape").Items()) out.shape.push_back(size.Integer());
  if (out.shape.size() > kMaxRank) throw ValueError(name + " has too many dimensions");
  const int64_t count = Elements(out.shape);
  const bool text = out.dtype == "string";
  if (!archive.Has(key + ".npy") || (text && !archive.Has(key + ".offsets.npy"))) throw ValueError(name + " is not there");
  Array array = ParseArray(archive.Read(key + ".npy"));
  if (text) {
    out.strings = Split(array.bytes, ParseArray(archive.Read(key + ".offsets.npy")), count);
    return out;
  }
  const char* carrier = Carrier(out.dtype);
  if (!carrier || array.descr != carrier || array.shape != out.shape) {
    throw ValueError(name + " is " + array.descr + ShapeText(array.shape) + ", not " + out.dtype + ShapeText(out.shape));
  }
  out.bytes = std::move(array.bytes);
  return out;
}

NamedTensors ReadAll(const ZipReader& archive) {
  if (!archive.Has("meta.npy")) throw ValueError("no member called meta");
  const Array meta = ParseArray(archive.Read("meta.npy"));
  if (meta.bytes.size() > kMaxMeta) throw ValueError("meta member is larger than " + std::to_string(kMaxMeta) + " bytes");
  NamedTensors out;
  const Json entries = Json::Parse(meta.bytes);
  for (const Json& entry : entries.Items()) {
    const std::string& name = entry.At("name").String();
    out.emplace_back(name, ReadTensor(archive, "t" + std::to_string(out.size()), name, entry));
  }
  return out;
}

}  // namespace

int64_t Tensor::Count() const { return Elements(shape); }

const char* Carrier(const std::string& dtype) {
  const auto found = Carriers().find(dtype);
  return found == Carriers().end() ? nullptr : found->second;
}

int64_t CarrierSize(const char* carrier) {
  for (const auto& entry : Carriers()) {
    if (std::strcmp(entry.second, carrier) == 0) return std::atoi(carrier + 2);
  }
  return 0;
}

NamedTensors LoadTensors(const std::string& path) {
  const ZipReader archive(path);
  try {
    return ReadAll(archive);
  } catch (const Failure& failure) {
    if (failure.message.compare(0, path.size(), path) == 0) throw;
    throw ValueError(path + ": " + failure.message);
  }
}

void SaveTensors(const std::string& path, const NamedTensors& tensors) {
  Json meta = Json::Array();
  ZipWriter archive;
  std::set<std::string> names;
  for (const auto& named : tensors) {
    const Tensor& tensor = named.second;
    if (!names.insert(named.first).second) throw ValueError("two tensors are called " + Repr(named.first));
    const std::string key = "t" + std::to_string(meta.items.size());
    Json entry = Json::Object(), shape = Json::Array();
    for (int64_t size : tensor.shape) shape.Push(size);
    entry.Set("name", named.first);
    entry.Set("dtype", tensor.dtype);
    entry.Set("shape", shape);
    meta.Push(entry);
    if (tensor.dtype != "string") {
      archive.Add(key + ".npy", FormatArray(Carrier(tensor.dtype), tensor.shape, tensor.bytes));
      continue;
    }
    std::string bytes, offsets(8, '\0');
    for (const std::string& item : tensor.strings) {
      bytes += item;
      const int64_t end = static_cast<int64_t>(bytes.size());
      offsets.append(reinterpret_cast<const char*>(&end), sizeof(end));
    }
    archive.Add(key + ".npy", FormatArray("|u1", {static_cast<int64_t>(bytes.size())}, bytes));
    archive.Add(key + ".offsets.npy", FormatArray("<i8", {static_cast<int64_t>(tensor.strings.size()) + 1}, offsets));
  }
  const std::string text = meta.Dump();
  archive.Add("meta.npy", FormatArray("|u1", {static_cast<int64_t>(text.size())}, text));
  archive.Save(path);
}

}  // namespace compat
