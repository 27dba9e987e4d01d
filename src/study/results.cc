#include "study/results.h"

#include <fmt/format.h>

#include <ctime>

#include "base/files.h"
#include "report/page/page_html.h"
#include "report/page/page_json.h"

namespace trireme {

void WritePage(const Page& page, const std::string& folder) {
  ReplaceFile(folder + "/page.html", PageHtml(page));
  ReplaceFile(folder + "/page.json", PageJson(page) + "\n");
}

std::string DatedFolder(const std::string& stem) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char date[32];
  std::strftime(date, sizeof(date), "%Y%m%d-%H%M%S", &local);
  const std::string name = fmt::format("runs/{}-{}", stem, date);
  std::string folder = name;
  for (int i = 2; Exists(folder); ++i) folder = fmt::format("{}-{}", name, i);
  return folder;
}

}  // namespace trireme
