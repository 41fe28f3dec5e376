#include "failure.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace compat {

Failure::Failure(std::string error_class, std::string message, std::string status)
    : error_class(std::move(error_class)), message(std::move(message)), status(std::move(status)) {}

Failure ValueError(const std::string& message) { return Failure("ValueError", message); }
Failure TypeError(const std::string& message) { return Failure("TypeError", message); }
Failure KeyError(const std::string& message) { return Failure("KeyError", Repr(message)); }
Failure Unsupported(const std::string& message) { return Failure("Unsupported", message, "unsupported"); }

Failure FileError(int number, const std::string& path) {
  const char* kind = number == ENOENT ? "FileNotFoundError" : number == EACCES ? "PermissionError" : "OSError";
  return Failure(kind, "[Errno " + std::to_string(number) + "] " + std::strerror(number) + ": " + Repr(path));
}

std::string Repr(const std::string& text) {
  const bool single = text.find('\'') == std::string::npos || text.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (unsigned char c : text) {
    char escaped[8];
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c < 0x20 || c == 0x7f) {
      std::snprintf(escaped, sizeof(escaped), "\\x%02x", c);
      out += escaped;
    } else {
      if (c == static_cast<unsigned char>(quote) || c == '\\') out += '\\';
      out += static_cast<char>(c);
    }
  }
  return out + quote;
}

std::string Repr(const std::vector<std::string>& items) {
  std::string out = "[";
  for (const std::string& item : items) out += (out.size() > 1 ? ", " : "") + Repr(item);
  return out + "]";
}

size_t Utf8Length(const std::string& text, size_t position) {
  const auto byte = [&](size_t i) -> unsigned { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto tail = [&](size_t count) {
    for (size_t i = 1; i <= count; ++i) {
      if ((byte(position + i) & 0xC0) != 0x80) return false;
    }
    return true;
  };
  const unsigned first = byte(position), second = byte(position + 1);
  if (position >= text.size()) return 0;
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    const bool overlong = first == 0xE0 && second < 0xA0, surrogate = first == 0xED && second > 0x9F;
    return !overlong && !surrogate && tail(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const bool overlong = first == 0xF0 && second < 0x90, beyond = first == 0xF4 && second > 0x8F;
    return !overlong && !beyond && tail(3) ? 4 : 0;
  }
  return 0;
}

std::string CleanUtf8(const std::string& text, size_t limit) {
  std::string out;
  for (size_t position = 0, count = 0; position < text.size() && count < limit; ++count) {
    const size_t length = Utf8Length(text, position);
    out += length ? text.substr(position, length) : "\xEF\xBF\xBD";
    position += length ? length : 1;
  }
  return out;
}

}  // namespace compat
