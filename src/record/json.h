#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace trireme {

// A JSON value, for building and for reading. Objects keep the order in which they were written.
//
//   Json line = Json::Object();
//   line.Add("epoch", 3).Add("loss", 0.25).Add("device", "cpu");
//   line.Text()  ->  {"epoch":3,"loss":0.25,"device":"cpu"}
//
// Reading: At("key") and the As...() throw an Error that says which key is missing or of another
// kind; whoever knows the file's name adds it.
class Json {
 public:
  using Member = std::pair<std::string, Json>;

  Json() = default;  // null
  Json(bool value) : value_(value) {}
  Json(double value) : value_(value) {}  // not finite: written as null, which JSON has instead
  template <std::integral T>
  requires(!std::same_as<T, bool>) Json(T value) : value_(static_cast<int64_t>(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(const char* value) : value_(std::string(value)) {}
  template <class T>
  Json(const std::vector<T>& values) : value_(std::vector<Json>(values.begin(), values.end())) {}

  static Json Object() { return Json(Value(std::vector<Member>())); }
  static Json Array() { return Json(Value(std::vector<Json>())); }

  Json& Add(std::string_view key, Json value);  // to an object; an existing key is replaced
  Json& AddNew(std::string key, Json value);    // the caller knows that the key is new
  Json& Append(Json value);                     // to an array

  // On one line; with `indent` > 0, one member per line (arrays of plain values stay on one).
  std::string Text(int indent = 0) const;

  bool IsNull() const { return Holds<std::monostate>(); }
  bool IsObject() const { return Holds<std::vector<Member>>(); }
  bool IsArray() const { return Holds<std::vector<Json>>(); }
  bool IsInt() const { return Holds<int64_t>(); }
  bool IsString() const { return Holds<std::string>(); }

  const Json* Find(std::string_view key) const;  // null if there is no such member
  const Json& At(std::string_view key) const;
  const std::vector<Member>& Members() const { return As<std::vector<Member>>("an object"); }
  const std::vector<Json>& Items() const { return As<std::vector<Json>>("an array"); }
  bool AsBool() const { return As<bool>("true or false"); }
  int64_t AsInt() const { return As<int64_t>("an integer"); }
  double AsDouble() const;  // integers, too
  const std::string& AsString() const { return As<std::string>("a string"); }

 private:
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<Json>,
                             std::vector<Member>>;
  explicit Json(Value value) : value_(std::move(value)) {}

  template <class T>
  bool Holds() const {
    return std::holds_alternative<T>(value_);
  }
  template <class T>
  const T& As(const char* wanted) const {
    if (!Holds<T>()) FailKind(wanted);
    return std::get<T>(value_);
  }
  [[noreturn]] void FailKind(const char* wanted) const;
  void Write(std::string& out, int indent, int level) const;

  Value value_;
};

// Untrusted text: malformed, not UTF-8, a key twice in one object, or nested deeper than 32 is an
// Error that begins with `who` (the file) and says where.
Json ParseJson(std::string_view text, std::string_view who);

}  // namespace trireme
