#include "record/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {
namespace {

constexpr size_t kDeepest = 32;

bool IsPlain(char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }

// Keys are plain text and most of what is written. Label and file names come from the user's data:
// what is not UTF-8 becomes U+FFFD.
void WriteString(std::string& out, const std::string& text) {
  if (std::ranges::all_of(text, IsPlain)) {
    out += '"';
    out += text;
    out += '"';
    return;
  }
  out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void WriteDouble(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  const size_t begin = out.size();
  fmt::format_to(std::back_inserter(out), "{}", value);  // the shortest that comes back equal
  if (out.find_first_of(".e", begin) == std::string::npos) out += ".0";  // a double when read
}

void NewLine(std::string& out, int indent, int level) {
  if (indent == 0) return;
  out += '\n';
  out.append(static_cast<size_t>(indent * level), ' ');
}

// Builds a Json from the parser's events: nothing is held twice, and depth and duplicates are
// noticed while reading.
class Builder {
 public:
  using json = nlohmann::json;

  Json root;
  std::string problem;

  bool null() { return Put({}); }
  bool boolean(bool value) { return Put(value); }
  bool number_integer(json::number_integer_t value) { return Put(value); }
  bool number_unsigned(json::number_unsigned_t value) {
    if (value > static_cast<uint64_t>(INT64_MAX)) return Put(static_cast<double>(value));
    return Put(static_cast<int64_t>(value));
  }
  bool number_float(json::number_float_t value, const std::string&) { return Put(value); }
  bool string(std::string& value) { return Put(std::move(value)); }
  bool binary(json::binary_t&) { return false; }
  bool start_object(size_t) { return Open(Json::Object()); }
  bool start_array(size_t) { return Open(Json::Array()); }
  bool key(std::string& name) {
    Level& level = open_.back();
    if (!level.keys.insert(name).second) {
      problem = fmt::format("has the key {} twice", Quoted(name));
      return false;
    }
    level.key = std::move(name);
    return true;
  }
  bool end_object() { return Close(); }
  bool end_array() { return Close(); }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: why": only the why.
    const std::string_view text = error.what();
    const size_t why = text.find(": ");
    problem = fmt::format("is not JSON, at byte {}: {}", position,
                          text.substr(why == text.npos ? 0 : why + 2, 200));
    return false;
  }

 private:
  struct Level {
    Json value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  static std::string Quoted(const std::string& name) {
    std::string out;
    WriteString(out, name.substr(0, 80));
    return out;
  }

  bool Put(Json value) {
    if (open_.empty()) {
      root = std::move(value);
    } else if (Level& level = open_.back(); level.value.IsArray()) {
      level.value.Append(std::move(value));
    } else {
      level.value.AddNew(std::move(level.key), std::move(value));
    }
    return true;
  }

  bool Open(Json empty) {
    if (open_.size() == kDeepest) {
      problem = fmt::format("is nested more than {} levels deep", kDeepest);
      return false;
    }
    open_.push_back({std::move(empty), {}, {}});
    return true;
  }

  bool Close() {
    Json done = std::move(open_.back().value);
    open_.pop_back();
    return Put(std::move(done));
  }

  std::vector<Level> open_;
};

}  // namespace

Json& Json::Add(std::string_view key, Json value) {
  TRIREME_ASSERT(IsObject());
  for (auto& [name, old] : std::get<std::vector<Member>>(value_)) {
    if (name == key) {
      old = std::move(value);
      return *this;
    }
  }
  return AddNew(std::string(key), std::move(value));
}

Json& Json::AddNew(std::string key, Json value) {
  TRIREME_ASSERT(IsObject());
  std::get<std::vector<Member>>(value_).emplace_back(std::move(key), std::move(value));
  return *this;
}

Json& Json::Append(Json value) {
  TRIREME_ASSERT(IsArray());
  std::get<std::vector<Json>>(value_).push_back(std::move(value));
  return *this;
}

std::string Json::Text(int indent) const {
  std::string out;
  Write(out, indent, 0);
  return out;
}

void Json::Write(std::string& out, int indent, int level) const {
  if (Holds<bool>()) {
    out += std::get<bool>(value_) ? "true" : "false";
  } else if (IsInt()) {
    fmt::format_to(std::back_inserter(out), "{}", std::get<int64_t>(value_));
  } else if (Holds<double>()) {
    WriteDouble(out, std::get<double>(value_));
  } else if (IsString()) {
    WriteString(out, std::get<std::string>(value_));
  } else if (IsArray()) {
    bool first = true;
    bool plain = true;
    for (const Json& item : Items()) plain = plain && !item.IsArray() && !item.IsObject();
    const int inner = plain ? 0 : indent;
    out += '[';
    for (const Json& item : Items()) {
      if (!std::exchange(first, false)) out += ',';
      NewLine(out, inner, level + 1);
      item.Write(out, indent, level + 1);
    }
    if (!first) NewLine(out, inner, level);
    out += ']';
  } else if (IsObject()) {
    bool first = true;
    out += '{';
    for (const auto& [key, value] : Members()) {
      if (!std::exchange(first, false)) out += ',';
      NewLine(out, indent, level + 1);
      WriteString(out, key);
      out += indent > 0 ? ": " : ":";
      value.Write(out, indent, level + 1);
    }
    if (!first) NewLine(out, indent, level);
    out += '}';
  } else {
    out += "null";
  }
}

const Json* Json::Find(std::string_view key) const {
  for (const auto& [name, value] : Members()) {
    if (name == key) return &value;
  }
  return nullptr;
}

const Json& Json::At(std::string_view key) const {
  const Json* found = Find(key);
  if (found == nullptr) throw Error("the key \"{}\" is missing", key);
  return *found;
}

double Json::AsDouble() const {
  return IsInt() ? static_cast<double>(AsInt()) : As<double>("a number");
}

void Json::FailKind(const char* wanted) const {
  const std::string text = Text();
  throw Error("expected {}, found {}{}", wanted, text.substr(0, 60), text.size() > 60 ? "..." : "");
}

Json ParseJson(std::string_view text, std::string_view who) {
  Builder builder;
  if (!nlohmann::json::sax_parse(text.begin(), text.end(), &builder)) {
    throw Error("{}: {}", who, builder.problem);
  }
  return std::move(builder.root);
}

}  // namespace trireme
