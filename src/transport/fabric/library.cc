#include "transport/fabric/library.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>

#include "base/error.h"
#include "base/plugin.h"

namespace trireme {
namespace {

std::string HowToGetOne() {
  return "install libfabric-dev and build trireme again: it then lies beside the program";
}

}  // namespace

std::string FabricLibrary::Find() {
  const char* const chosen = std::getenv("TRIREME_FABRIC_PLUGIN");
  if (chosen != nullptr && chosen[0] != '\0') return chosen;
  for (const std::string& folder : PluginFolders()) {
    const std::string path = folder + "/trireme-fabric.so";
    std::error_code none;
    if (std::filesystem::exists(path, none)) return path;
  }
  throw Error(
      "there is no libfabric plugin (trireme-fabric.so) in {}, and TRIREME_FABRIC_PLUGIN is not "
      "set; {}",
      fmt::join(PluginFolders(), " or "), HowToGetOne());
}

struct KeptSignals::Actions {
  struct sigaction of[_NSIG];
};

KeptSignals::KeptSignals() : actions_(new Actions()) {
  for (int signal = 1; signal < _NSIG; ++signal) sigaction(signal, nullptr, &actions_->of[signal]);
}

KeptSignals::~KeptSignals() {
  for (int signal = 1; signal < _NSIG; ++signal) {
    struct sigaction now;
    if (sigaction(signal, nullptr, &now) != 0) continue;  // of the C library itself
    if (now.sa_sigaction != actions_->of[signal].sa_sigaction) {
      sigaction(signal, &actions_->of[signal], nullptr);
    }
  }
  delete actions_;
}

const FabricLibrary& FabricLibrary::Get() {
  static std::mutex mutex;
  static std::optional<FabricLibrary> library;
  std::lock_guard lock(mutex);
  if (!library) library = FabricLibrary(Find());
  return *library;
}

FabricLibrary::FabricLibrary(std::string path) : path_(std::move(path)) {
  const KeptSignals kept;
  const PluginKind kind = {"libfabric", "trireme_fabric_table", TRIREME_FABRIC_TABLE,
                           sizeof(TriremeFabricTable), HowToGetOne};
  table_ = static_cast<const TriremeFabricTable*>(OpenPlugin(kind, path_));
}

std::string FabricLibrary::Name() const {
  char text[64] = "";
  table_->library(text, sizeof(text));
  return text;
}

std::string FabricLibrary::Explain(int error) const {
  char text[256] = "";
  table_->explain(error, text, sizeof(text));
  return text;
}

}  // namespace trireme
