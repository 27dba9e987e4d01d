#pragma once
#include <string>

#include "transport/fabric/plugin.h"

namespace trireme {

// libfabric, behind the C table of plugin.h. It stays in memory until the process ends.
class FabricLibrary {
 public:
  // TRIREME_FABRIC_PLUGIN, or trireme-fabric.so beside the program. Throws where there is none, or
  // the machine has no libfabric.
  static const FabricLibrary& Get();

  // The file that Get opens. Throws where there is none.
  static std::string Find();

  const std::string& path() const { return path_; }
  const TriremeFabricTable& table() const { return *table_; }
  std::string Name() const;  // libfabric 1.17
  std::string Explain(int error) const;

 private:
  explicit FabricLibrary(std::string path);

  std::string path_;
  const TriremeFabricTable* table_;
};

// Libraries that libfabric loads, and its providers, take over signals that others have use for:
// this gives them back.
class KeptSignals {
 public:
  KeptSignals();
  ~KeptSignals();
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  struct Actions;
  Actions* const actions_;
};

}  // namespace trireme
