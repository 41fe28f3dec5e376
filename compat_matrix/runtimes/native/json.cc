#include "json.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "failure.h"

namespace compat {
namespace {

constexpr int kMaxDepth = 100;

class Parser {
 public:
  explicit Parser(const std::string& text) : text_(text) {}

  Json Whole() {
    Json out = Value(0);
    Space();
    if (position_ != text_.size()) Fail("something behind the value");
    return out;
  }

 private:
  [[noreturn]] void Fail(const std::string& what) const {
    throw ValueError("no JSON: " + what + " at character " + std::to_string(position_));
  }

  char Peek() const { return position_ < text_.size() ? text_[position_] : '\0'; }

  void Space() {
    while (position_ < text_.size() && (Peek() == ' ' || Peek() == '\t' || Peek() == '\n' || Peek() == '\r')) ++position_;
  }

  bool Take(char wanted) {
    Space();
    if (position_ >= text_.size() || Peek() != wanted) return false;
    ++position_;
    return true;
  }

  bool Word(const char* word) {
    const std::string wanted(word);
    if (text_.compare(position_, wanted.size(), wanted) != 0) return false;
    position_ += wanted.size();
    return true;
  }

  Json Value(int depth) {
    if (depth > kMaxDepth) Fail("nested too deeply");
    Space();
    switch (Peek()) {
      case '{':
        return Object(depth);
      case '[':
        return Array(depth);
      case '"':
        return Json(String());
      case 't':
        if (Word("true")) return Json(true);
        break;
      case 'f':
        if (Word("false")) return Json(false);
        break;
      case 'n':
        if (Word("null")) return Json();
        break;
      default:
        return Number();
    }
    Fail("an unknown word");
  }

  Json Object(int depth) {
    Json out = Json::Object();
    Take('{');
    if (Take('}')) return out;
    do {
      Space();
      if (Peek() != '"') Fail("no key");
      const std::string key = String();
      if (!Take(':')) Fail("no colon");
      out.Set(key, Value(depth + 1));
    } while (Take(','));
    if (!Take('}')) Fail("an object that does not end");
    return out;
  }

  Json Array(int depth) {
    Json out = Json::Array();
    Take('[');
    if (Take(']')) return out;
    do {
      out.Push(Value(depth + 1));
    } while (Take(','));
    if (!Take(']')) Fail("an array that does not end");
    return out;
  }

  bool Digits() {
    const size_t start = position_;
    while (Peek() >= '0' && Peek() <= '9') ++position_;
    return position_ > start;
  }

  Json Number() {
    const size_t start = position_;
    if (Peek() == '-') ++position_;
    const bool zero = Peek() == '0';
    const size_t first = position_;
    if (!Digits() || (zero && position_ > first + 1)) Fail("no value");
    bool whole = true;
    if (Peek() == '.') {
      ++position_;
      if (!Digits()) Fail("a number without digits");
      whole = false;
    }
    if (Peek() == 'e' || Peek() == 'E') {
      ++position_;
      if (Peek() == '+' || Peek() == '-') ++position_;
      if (!Digits()) Fail("an exponent without digits");
      whole = false;
    }
    const std::string digits = text_.substr(start, position_ - start);
    Json out;
    errno = 0;
    if (whole) {
      out.kind = Json::Kind::kInt;
      out.integer = std::strtoll(digits.c_str(), nullptr, 10);
      if (errno == ERANGE) Fail("an integer of more than 64 bits");
      return out;
    }
    out.kind = Json::Kind::kReal;
    out.real = std::strtod(digits.c_str(), nullptr);
    if (!std::isfinite(out.real)) Fail("a number that is too large");
    return out;
  }

  unsigned Hex4() {
    unsigned out = 0;
    for (int i = 0; i < 4; ++i, ++position_) {
      const char c = Peek();
      static const std::string kDigits = "0123456789abcdef0123456789ABCDEF";
      const size_t digit = c ? kDigits.find(c) : std::string::npos;
      if (digit == std::string::npos) Fail("an escape without four digits");
      out = out * 16 + static_cast<unsigned>(digit % 16);
    }
    return out;
  }

  std::string String() {
    std::string out;
    ++position_;
    for (;;) {
      if (position_ >= text_.size()) Fail("a string that does not end");
      const char c = text_[position_];
      if (static_cast<unsigned char>(c) < 0x20) Fail("a control character in a string");
      ++position_;
      if (c == '"') return out;
      if (c != '\\') {
        out += c;
        continue;
      }
      Escape(&out);
    }
  }

  void Escape(std::string* out) {
    static const std::string kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
    const char c = Peek();
    ++position_;
    const size_t known = c ? kFrom.find(c) : std::string::npos;
    if (known != std::string::npos) {
      *out += kTo[known];
      return;
    }
    if (c != 'u') Fail("an unknown escape");
    unsigned point = Hex4();
    if (point >= 0xD800 && point < 0xDC00 && text_.compare(position_, 2, "\\u") == 0) {
      const size_t before = position_;
      position_ += 2;
      const unsigned low = Hex4();
      if (low >= 0xDC00 && low < 0xE000) {
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
      } else {
        position_ = before;
      }
    }
    AppendUtf8(point, out);
  }

  // A lone surrogate becomes three bytes that are no UTF-8: no file has such a name, and it is replaced where it is shown.
  static void AppendUtf8(unsigned point, std::string* out) {
    const auto tail = [&](unsigned shift) { *out += static_cast<char>(0x80 | ((point >> shift) & 0x3F)); };
    if (point < 0x80) {
      *out += static_cast<char>(point);
    } else if (point < 0x800) {
      *out += static_cast<char>(0xC0 | (point >> 6));
      tail(0);
    } else if (point < 0x10000) {
      *out += static_cast<char>(0xE0 | (point >> 12));
      tail(6);
      tail(0);
    } else {
      *out += static_cast<char>(0xF0 | (point >> 18));
      tail(12);
      tail(6);
      tail(0);
    }
  }

  const std::string& text_;
  size_t position_ = 0;
};

const char* KindName(Json::Kind kind) {
  static const char* const kNames[] = {"null", "a boolean", "an integer", "a number", "a string", "a list", "an object"};
  return kNames[static_cast<int>(kind)];
}

[[noreturn]] void Wrong(Json::Kind wanted, Json::Kind got) {
  throw TypeError(std::string("expected ") + KindName(wanted) + ", got " + KindName(got));
}

void Quote(const std::string& raw, std::string* out) {
  const std::string text = CleanUtf8(raw, raw.size());
  *out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') {
      *out += '\\';
      *out += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", static_cast<unsigned>(c));
      *out += escaped;
    } else {
      *out += c;
    }
  }
  *out += '"';
}

}  // namespace

Json Json::Parse(const std::string& text) { return Parser(text).Whole(); }

Json Json::Strings(const std::vector<std::string>& items) {
  Json out = Array();
  for (const std::string& item : items) out.Push(item);
  return out;
}

const Json* Json::Find(const std::string& key) const {
  if (kind != Kind::kObject) Wrong(Kind::kObject, kind);
  const auto found = members.find(key);
  return found == members.end() ? nullptr : &found->second;
}

const Json& Json::At(const std::string& key) const {
  const Json* found = Find(key);
  if (!found) throw KeyError(key);
  return *found;
}

const std::string& Json::String() const {
  if (kind != Kind::kString) Wrong(Kind::kString, kind);
  return text;
}

int64_t Json::Integer() const {
  if (kind != Kind::kInt) Wrong(Kind::kInt, kind);
  return integer;
}

const std::vector<Json>& Json::Items() const {
  if (kind != Kind::kArray) Wrong(Kind::kArray, kind);
  return items;
}

std::vector<std::string> Json::StringList() const {
  std::vector<std::string> out;
  for (const Json& item : Items()) out.push_back(item.String());
  return out;
}

std::string Json::Dump() const {
  std::string out;
  Append(&out);
  return out;
}

void Json::Append(std::string* out) const {
  const char* separator = "";
  switch (kind) {
    case Kind::kNull:
      *out += "null";
      break;
    case Kind::kBool:
      *out += integer ? "true" : "false";
      break;
    case Kind::kInt:
      *out += std::to_string(integer);
      break;
    case Kind::kReal: {
      char digits[40];
      std::snprintf(digits, sizeof(digits), "%.17g", real);
      *out += digits;
      break;
    }
    case Kind::kString:
      Quote(text, out);
      break;
    case Kind::kArray:
      *out += '[';
      for (const Json& item : items) {
        *out += separator;
        item.Append(out);
        separator = ", ";
      }
      *out += ']';
      break;
    case Kind::kObject:
      *out += '{';
      for (const auto& member : members) {
        *out += separator;
        Quote(member.first, out);
        *out += ": ";
        member.second.Append(out);
        separator = ", ";
      }
      *out += '}';
      break;
  }
}

}  // namespace compat
