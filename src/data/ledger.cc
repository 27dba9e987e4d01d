#include "data/ledger.h"

#include <fmt/format.h>

#include <iterator>

namespace trireme {
namespace {

OutputFile Open(const std::string& directory, int worker) {
  MakeDirectories(directory);
  const std::string path = fmt::format("{}/worker-{}.csv", directory, worker);
  const bool fresh = !Exists(path);
  OutputFile file(path, OutputFile::Start::kAtEnd);
  if (fresh) file.Write("step,epoch,position,sample\n");
  return file;
}

}  // namespace

Ledger::Ledger(const std::string& directory, int worker) : file_(Open(directory, worker)) {}

void Ledger::Note(int64_t step, const Positions& range, const Order& order) {
  std::string lines;
  for (int64_t position = range.begin; position < range.end; ++position) {
    fmt::format_to(std::back_inserter(lines), "{},{},{},{}\n", step, range.epoch, position,
                   order.At(range.epoch, position));
  }
  file_.Write(lines);
}

}  // namespace trireme
