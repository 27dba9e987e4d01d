#include "study/plan_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/files.h"

namespace trireme {

void AdoptPlan(const std::string& out, const Json& plan, const char* what) {
  const std::string path = out + "/plan.json";
  if (!Exists(path)) return ReplaceFile(path, plan.Text(1) + "\n");
  const Json before = ParseJson(ReadFile(path), path);
  for (const auto& [key, value] : plan.Members()) {
    const Json* other = before.Find(key);
    if (other && other->Text() == value.Text()) continue;
    const bool brief = key != "config";
    throw UsageError(
        "{} holds another {}: its {} {}; use another --out", out, what,
        brief ? key : "recipe has changed",
        brief ? fmt::format("is {}, not {}", other ? other->Text() : "missing", value.Text())
              : "since");
  }
}

}  // namespace trireme
