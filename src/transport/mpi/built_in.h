#pragma once
#include <span>
#include <string>
#include <string_view>

namespace trireme {

// Plugins that are part of the program: plugin.c compiled for a kind of MPI libraries, linked to
// none of them. The build says which there are (CMakeLists.txt).
struct BuiltInMpiPlugin {
  std::string_view name;  // NameOf(MpiKind)
  std::string_view bytes;
};
std::span<const BuiltInMpiPlugin> BuiltInMpiPlugins();

// A path that dlopen takes for these bytes: memory, or where the kernel has none to offer (before
// 3.17) a file that is removed when the object goes. Throws Error where neither is possible.
class PluginFile {
 public:
  PluginFile(std::string_view bytes, const std::string& name);
  ~PluginFile();
  PluginFile(const PluginFile&) = delete;
  PluginFile& operator=(const PluginFile&) = delete;

  const std::string& path() const { return path_; }

  // The next place where the file may lie, for when the present one is mounted noexec; false: there
  // is none left.
  bool Move();

 private:
  bool WriteTo(const std::string& folder);

  const std::string_view bytes_;
  const std::string name_;
  std::string path_;
  int memory_ = -1;
  size_t next_folder_ = 0;
  std::string problems_;
};

}  // namespace trireme
