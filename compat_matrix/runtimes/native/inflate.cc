// Raw deflate (RFC 1951), read from untrusted bytes. Slow and small: the tensors of a request are, too.
#include <cstdint>
#include <vector>

#include "failure.h"
#include "zip.h"

namespace compat {
namespace {

constexpr int kMaxBits = 15;
constexpr size_t kMaxRatio = 1032;  // no deflate stream grows by more

class Bits {
 public:
  Bits(const char* data, size_t size) : data_(reinterpret_cast<const unsigned char*>(data)), size_(size) {}

  unsigned Take(int count) {
    while (held_ < count) {
      if (position_ >= size_) throw ValueError("deflate: the stream ends too early");
      buffer_ |= static_cast<uint32_t>(data_[position_++]) << held_;
      held_ += 8;
    }
    const unsigned out = buffer_ & ((1u << count) - 1);
    buffer_ >>= count;
    held_ -= count;
    return out;
  }

  void Align() { buffer_ = 0, held_ = 0; }  // fewer than eight bits are ever held between two calls

 private:
  const unsigned char* data_;
  size_t size_, position_ = 0;
  uint32_t buffer_ = 0;
  int held_ = 0;
};

// A canonical Huffman code: how many codes have each length, and the symbols in the order of their codes.
class Code {
 public:
  // `complete` is false for the code of distances, which may have one code only or none.
  Code(const unsigned char* lengths, int count, bool complete) : symbols_(static_cast<size_t>(count)) {
    for (int i = 0; i < count; ++i) ++counts_[lengths[i]];
    int left = 1;
    for (int length = 1; length <= kMaxBits; ++length) {
      left = left * 2 - counts_[length];
      if (left < 0) throw ValueError("deflate: a code with too many words");
    }
    if (left > 0 && (complete || count - counts_[0] > 1)) throw ValueError("deflate: an incomplete code");
    int offsets[kMaxBits + 2] = {0};
    for (int length = 1; length <= kMaxBits; ++length) offsets[length + 1] = offsets[length] + counts_[length];
    for (int i = 0; i < count; ++i) {
      if (lengths[i]) symbols_[static_cast<size_t>(offsets[lengths[i]]++)] = i;
    }
  }

  int Decode(Bits* bits) const {
    int code = 0, first = 0, index = 0;
    for (int length = 1; length <= kMaxBits; ++length) {
      code |= static_cast<int>(bits->Take(1));
      if (code - counts_[length] < first) return symbols_[static_cast<size_t>(index + code - first)];
      index += counts_[length];
      first = (first + counts_[length]) << 1;
      code <<= 1;
    }
    throw ValueError("deflate: a word that is not in the code");
  }

 private:
  int counts_[kMaxBits + 1] = {0};
  std::vector<int> symbols_;
};

class Inflater {
 public:
  Inflater(const char* packed, size_t packed_size, size_t size) : bits_(packed, packed_size), size_(size) { out_.reserve(size); }

  std::string Run() {
    bool last = false;
    while (!last) {
      last = bits_.Take(1) != 0;
      switch (bits_.Take(2)) {
        case 0:
          Stored();
          break;
        case 1:
          Fixed();
          break;
        case 2:
          Dynamic();
          break;
        default:
          throw ValueError("deflate: an unknown kind of block");
      }
    }
    if (out_.size() != size_) throw ValueError("deflate: fewer bytes than announced");
    return std::move(out_);
  }

 private:
  void Put(char byte) {
    if (out_.size() >= size_) throw ValueError("deflate: more bytes than announced");
    out_ += byte;
  }

  void Stored() {
    bits_.Align();
    const unsigned length = bits_.Take(16), inverse = bits_.Take(16);
    if (length != (~inverse & 0xFFFFu)) throw ValueError("deflate: a stored block contradicts its length");
    for (unsigned i = 0; i < length; ++i) Put(static_cast<char>(bits_.Take(8)));
  }

  void Fixed() {
    unsigned char lengths[288 + 30];
    for (int i = 0; i < 288; ++i) lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : 8;
    for (int i = 0; i < 30; ++i) lengths[288 + i] = 5;
    static const Code literals(lengths, 288, true);
    unsigned char five[32];
    for (unsigned char& length : five) length = 5;
    static const Code distances(five, 32, true);
    Block(literals, distances);
  }

  void Dynamic() {
    static const unsigned char kOrder[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    const int literal_count = static_cast<int>(bits_.Take(5)) + 257, distance_count = static_cast<int>(bits_.Take(5)) + 1;
    const int order_count = static_cast<int>(bits_.Take(4)) + 4;
    if (literal_count > 286 || distance_count > 30) throw ValueError("deflate: a code with too many words");
    unsigned char lengths[286 + 30] = {0};
    for (int i = 0; i < order_count; ++i) lengths[kOrder[i]] = static_cast<unsigned char>(bits_.Take(3));
    const Code code(lengths, 19, true);
    for (unsigned char& length : lengths) length = 0;
    for (int i = 0; i < literal_count + distance_count;) {
      const int symbol = code.Decode(&bits_);
      unsigned char repeated = 0;
      int times = 1;
      if (symbol < 16) {
        repeated = static_cast<unsigned char>(symbol);
      } else if (symbol == 16) {
        if (i == 0) throw ValueError("deflate: nothing to repeat");
        repeated = lengths[i - 1];
        times = 3 + static_cast<int>(bits_.Take(2));
      } else {
        times = symbol == 17 ? 3 + static_cast<int>(bits_.Take(3)) : 11 + static_cast<int>(bits_.Take(7));
      }
      if (i + times > literal_count + distance_count) throw ValueError("deflate: too many lengths");
      while (times-- > 0) lengths[i++] = repeated;
    }
    if (lengths[256] == 0) throw ValueError("deflate: a block that cannot end");
    Block(Code(lengths, literal_count, false), Code(lengths + literal_count, distance_count, false));
  }

  void Block(const Code& literals, const Code& distances) {
    static const unsigned short kLength[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                               31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const unsigned char kLengthBits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                                  2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    static const unsigned short kDistance[30] = {1,   2,   3,   4,   5,   7,    9,    13,   17,   25,
                                                 33,  49,  65,  97,  129, 193,  257,  385,  513,  769,
                                                 1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
    for (;;) {
      int symbol = literals.Decode(&bits_);
      if (symbol == 256) return;
      if (symbol < 256) {
        Put(static_cast<char>(symbol));
        continue;
      }
      symbol -= 257;
      if (symbol >= 29) throw ValueError("deflate: an unknown length");
      const size_t length = kLength[symbol] + bits_.Take(kLengthBits[symbol]);
      const int far = distances.Decode(&bits_);
      if (far >= 30) throw ValueError("deflate: an unknown distance");
      const size_t distance = kDistance[far] + bits_.Take(far < 4 ? 0 : far / 2 - 1);
      if (distance > out_.size()) throw ValueError("deflate: a distance to before the start");
      for (size_t i = 0; i < length; ++i) Put(out_[out_.size() - distance]);
    }
  }

  Bits bits_;
  size_t size_;
  std::string out_;
};

}  // namespace

std::string Inflate(const char* packed, size_t packed_size, size_t size) {
  // Before anything is allocated: a lying size must not take memory that the file is too small to fill.
  if (size / kMaxRatio > packed_size) throw ValueError("deflate: more bytes announced than the stream can hold");
  return Inflater(packed, packed_size, size).Run();
}

}  // namespace compat
