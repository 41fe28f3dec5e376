// The little of ZIP that an .npz file is made of: members stored or deflated, no zip64, no encryption. Untrusted when read.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace compat {

class ZipReader {
 public:
  // Reads the whole file and its directory. Throws FileError, or ValueError for a file that is no such archive.
  explicit ZipReader(const std::string& path);

  bool Has(const std::string& name) const { return members_.count(name) != 0; }
  // The bytes of a member, checked against its size and checksum. Throws ValueError.
  std::string Read(const std::string& name) const;

 private:
  struct Member {
    uint32_t method, crc, packed, size, header;
  };

  [[noreturn]] void Fail(const std::string& what) const;
  uint32_t Number(size_t position, int bytes) const;
  void ReadDirectory();

  std::string path_, data_;
  std::map<std::string, Member> members_;
};

// Members are stored, with a fixed date: equal tensors give equal files.
class ZipWriter {
 public:
  void Add(const std::string& name, const std::string& content);
  // Writes beside `path` and renames. Throws FileError; ValueError for more than 32 bits can number.
  void Save(const std::string& path);

 private:
  std::string body_, directory_;
  uint32_t count_ = 0;
};

// The bytes that `packed` (raw deflate) stands for: exactly `size`. Throws ValueError with what is wrong.
std::string Inflate(const char* packed, size_t packed_size, size_t size);

}  // namespace compat
