#include "zip.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.h"

namespace compat {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kMaxComment = 65535;
constexpr uint32_t kStored = 0, kDeflated = 8, kEncrypted = 1;
constexpr uint32_t kDate = 0x00210000;  // 1980-01-01 00:00, as DOS writes it

uint32_t Crc32(const std::string& data) {
  struct Table {
    uint32_t entry[256];
    Table() {
      for (uint32_t i = 0; i < 256; ++i) {
        uint32_t value = i;
        for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? 0xEDB88320u : 0u);
        entry[i] = value;
      }
    }
  };
  static const Table table;
  uint32_t crc = ~0u;
  for (unsigned char byte : data) crc = (crc >> 8) ^ table.entry[(crc ^ byte) & 0xFF];
  return ~crc;
}

void Put(std::string* out, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i, value >>= 8) *out += static_cast<char>(value & 0xFF);
}

class File {
 public:
  File(const std::string& path, int flags) : descriptor(open(path.c_str(), flags | O_CLOEXEC, 0666)) {
    if (descriptor < 0) throw FileError(errno, path);
  }
  ~File() { close(descriptor); }
  File(const File&) = delete;
  const int descriptor;
};

std::string ReadFile(const std::string& path) {
  const File file(path, O_RDONLY);
  std::string out;
  char chunk[1 << 16];
  for (;;) {
    const ssize_t count = read(file.descriptor, chunk, sizeof(chunk));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw FileError(errno, path);
    if (count == 0) return out;
    out.append(chunk, static_cast<size_t>(count));
  }
}

void WriteFile(const std::string& path, const std::string& data) {
  const File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  for (size_t done = 0; done < data.size();) {
    const ssize_t count = write(file.descriptor, data.data() + done, data.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw FileError(errno, path);
    done += static_cast<size_t>(count);
  }
}

}  // namespace

ZipReader::ZipReader(const std::string& path) : path_(path), data_(ReadFile(path)) { ReadDirectory(); }

void ZipReader::Fail(const std::string& what) const { throw ValueError(path_ + ": " + what); }

// A number of `bytes` bytes at `position`, which must lie in the file.
uint32_t ZipReader::Number(size_t position, int bytes) const {
  if (position > data_.size() || data_.size() - position < static_cast<size_t>(bytes)) Fail("the archive ends too early");
  uint32_t out = 0;
  for (int i = 0; i < bytes; ++i) out |= static_cast<uint32_t>(static_cast<unsigned char>(data_[position + i])) << (8 * i);
  return out;
}

void ZipReader::ReadDirectory() {
  if (data_.size() < kEndSize) Fail("no zip archive");
  size_t end = data_.size() - kEndSize;
  const size_t lowest = end > kMaxComment ? end - kMaxComment : 0;
  while (Number(end, 4) != kEnd) {
    if (end-- == lowest) Fail("no zip archive");
  }
  const uint32_t count = Number(end + 10, 2);
  size_t position = Number(end + 16, 4);
  for (uint32_t i = 0; i < count; ++i) {
    if (Number(position, 4) != kCentral) Fail("the archive's directory is damaged");
    Member member;
    member.method = Number(position + 10, 2);
    member.crc = Number(position + 16, 4);
    member.packed = Number(position + 20, 4);
    member.size = Number(position + 24, 4);
    member.header = Number(position + 42, 4);
    const uint32_t name_size = Number(position + 28, 2);
    if (data_.size() - position < kCentralSize + name_size) Fail("the archive ends too early");
    const std::string name = data_.substr(position + kCentralSize, name_size);
    if (Number(position + 8, 2) & kEncrypted) Fail("an encrypted member: " + Repr(name));
    members_[name] = member;
    position += kCentralSize + name_size + Number(position + 30, 2) + Number(position + 32, 2);
  }
}

std::string ZipReader::Read(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) Fail("no member " + Repr(name));
  const Member& member = found->second;
  if (Number(member.header, 4) != kLocal) Fail("no header of the member " + Repr(name));
  const size_t header = member.header;
  const size_t start = header + kLocalSize + Number(header + 26, 2) + Number(header + 28, 2);
  if (start > data_.size() || data_.size() - start < member.packed) Fail("the member " + Repr(name) + " ends behind the file");
  std::string out;
  if (member.method == kStored) {
    if (member.packed != member.size) Fail("two sizes of the member " + Repr(name));
    out = data_.substr(start, member.size);
  } else if (member.method == kDeflated) {
    try {
      out = Inflate(data_.data() + start, member.packed, member.size);
    } catch (const Failure& failure) {
      Fail(Repr(name) + ": " + failure.message);
    }
  } else {
    Fail("the member " + Repr(name) + " is packed with method " + std::to_string(member.method));
  }
  if (Crc32(out) != member.crc) Fail("the member " + Repr(name) + " has another checksum");
  return out;
}

void ZipWriter::Add(const std::string& name, const std::string& content) {
  const size_t header = body_.size();
  const bool room = content.size() < UINT32_MAX && header < UINT32_MAX && count_ < 0xFFFE;
  if (!room) throw ValueError("too much for one archive");
  std::string facts;  // what both headers say: needed version, flags, method, date, checksum, sizes, length of the name
  Put(&facts, 20, 2);
  Put(&facts, 0, 2);
  Put(&facts, kStored, 2);
  Put(&facts, kDate, 4);
  Put(&facts, Crc32(content), 4);
  Put(&facts, content.size(), 4);
  Put(&facts, content.size(), 4);
  Put(&facts, name.size(), 2);
  Put(&body_, kLocal, 4);
  body_ += facts;
  Put(&body_, 0, 2);
  body_ += name + content;
  Put(&directory_, kCentral, 4);
  Put(&directory_, 20, 2);
  directory_ += facts;
  Put(&directory_, 0, 12);  // no extra field, comment, disk or attributes
  Put(&directory_, header, 4);
  directory_ += name;
  ++count_;
}

void ZipWriter::Save(const std::string& path) {
  if (body_.size() > UINT32_MAX - 1) throw ValueError("too much for one archive");
  std::string end;
  Put(&end, kEnd, 4);
  Put(&end, 0, 4);
  Put(&end, count_, 2);
  Put(&end, count_, 2);
  Put(&end, directory_.size(), 4);
  Put(&end, body_.size(), 4);
  Put(&end, 0, 2);
  const std::string temporary = path + "." + std::to_string(getpid()) + ".tmp";
  WriteFile(temporary, body_ + directory_ + end);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) throw FileError(errno, path);
}

}  // namespace compat
