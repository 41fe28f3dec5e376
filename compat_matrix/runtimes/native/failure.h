// Errors that become replies, and text as Python shows it: the other workers are Python, and the messages are the same.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <vector>

namespace compat {

// `status` of the reply: "error", "rejected" (the code made for refusing) or "unsupported" (not this worker's vocabulary).
class Failure : public std::exception {
 public:
  Failure(std::string error_class, std::string message, std::string status = "error");
  const char* what() const noexcept override { return message.c_str(); }

  const std::string error_class, message, status;
};

Failure ValueError(const std::string& message);
Failure TypeError(const std::string& message);
// Python shows a KeyError's message as a literal.
Failure KeyError(const std::string& message);
// Of errno, with the path.
Failure FileError(int number, const std::string& path);
Failure Unsupported(const std::string& message);

// `repr` of a str, and of a list of them.
std::string Repr(const std::string& text);
std::string Repr(const std::vector<std::string>& items);

// `text` as valid UTF-8 of at most `limit` code points: what is none is replaced.
std::string CleanUtf8(const std::string& text, size_t limit);

// Length in bytes of the well-formed UTF-8 sequence at `position`, 0 when there is none.
size_t Utf8Length(const std::string& text, size_t position);

}  // namespace compat
