// JSON as the protocol uses it: one value, read from untrusted text, or written on one line.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace compat {

class Json {
 public:
  enum class Kind { kNull, kBool, kInt, kReal, kString, kArray, kObject };

  Json() = default;
  Json(bool value) : kind(Kind::kBool), integer(value) {}
  Json(int value) : kind(Kind::kInt), integer(value) {}
  Json(int64_t value) : kind(Kind::kInt), integer(value) {}
  Json(std::string value) : kind(Kind::kString), text(std::move(value)) {}
  Json(const char* value) : kind(Kind::kString), text(value) {}
  static Json Array() { return Json(Kind::kArray); }
  static Json Object() { return Json(Kind::kObject); }
  static Json Strings(const std::vector<std::string>& items);

  // Throws ValueError for what is no JSON value, is nested too deeply, or is followed by something.
  static Json Parse(const std::string& text);
  std::string Dump() const;

  bool IsNull() const { return kind == Kind::kNull; }
  // A member of an object. Throws KeyError when there is none, as a Python worker does; TypeError for another kind of value.
  const Json& At(const std::string& key) const;
  const Json* Find(const std::string& key) const;
  // The value as this kind. Throws TypeError.
  const std::string& String() const;
  int64_t Integer() const;
  const std::vector<Json>& Items() const;
  std::vector<std::string> StringList() const;

  void Push(Json value) { items.push_back(std::move(value)); }
  void Set(const std::string& key, Json value) { members[key] = std::move(value); }

  Kind kind = Kind::kNull;
  int64_t integer = 0;
  double real = 0;
  std::string text;
  std::vector<Json> items;
  std::map<std::string, Json> members;

 private:
  explicit Json(Kind kind) : kind(kind) {}
  void Append(std::string* out) const;
};

}  // namespace compat
