#include "cli/yaml.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace trireme {
namespace {

// Words that some reader takes for something else than a string: those of YAML 1.1.
bool IsPlain(const std::string& text) {
  constexpr std::array kTaken = {"y",  "n",   "yes",  "no",  "true", "false",
                                 "on", "off", "null", "inf", "nan",  "e"};
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  constexpr std::string_view kOthers = "0123456789_./-";
  if (text.empty() || kLetters.find(text[0]) == kLetters.npos) return false;
  for (const char c : text) {
    if (kLetters.find(c) == kLetters.npos && kOthers.find(c) == kOthers.npos) return false;
  }
  return std::find(kTaken.begin(), kTaken.end(), ToLower(text)) == kTaken.end();
}

std::string Scalar(const Json& value) {
  if (value.IsString() && IsPlain(value.AsString())) return value.AsString();
  return value.Text();  // JSON's strings, numbers and words are YAML's
}

void Write(const Json& value, const std::string& indent, std::string& text);

// What follows a key or a dash, with the end of its line.
void WriteBeside(const Json& value, const std::string& indent, std::string& text) {
  const bool empty =
      (value.IsObject() && value.Members().empty()) || (value.IsArray() && value.Items().empty());
  if (empty || (!value.IsObject() && !value.IsArray())) {
    text += " " + Scalar(value) + "\n";
  } else {
    text += "\n";
    Write(value, indent, text);
  }
}

void Write(const Json& value, const std::string& indent, std::string& text) {
  if (value.IsObject()) {
    for (const auto& [key, member] : value.Members()) {
      text += indent + Scalar(key) + ":";
      WriteBeside(member, indent + "  ", text);
    }
    return;
  }
  for (const Json& item : value.Items()) {
    if (!item.IsObject() || item.Members().empty()) {
      text += indent + "-";
      WriteBeside(item, indent + "  ", text);
      continue;
    }
    std::string members;  // the first of them beside the dash
    Write(item, indent + "  ", members);
    members.replace(indent.size(), 1, "-");
    text += members;
  }
}

}  // namespace

std::string YamlText(const Json& object) {
  std::string text;
  Write(object, "", text);
  return text;
}

}  // namespace trireme
