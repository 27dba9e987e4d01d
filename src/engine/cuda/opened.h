#pragma once
#include <string>

namespace trireme::cuda {

// A library that the plugin opens when it is needed, so that it can say what is missing.
struct LibraryFile {
  std::string user;     // who needs it: "device cuda"
  std::string name;     // for messages
  std::string file;     // as the loader knows it
  std::string install;  // what to do where it is missing
};

// Open until the process ends. Throws Error that says in one line what is missing and what to do.
class OpenedLibrary {
 public:
  explicit OpenedLibrary(const LibraryFile& library);

  template <class F>
  void Find(const char* name, F& function) const {
    function = reinterpret_cast<F>(Find(name));
  }

 private:
  void* Find(const char* name) const;

  const LibraryFile library_;
  void* opened_ = nullptr;
};

}  // namespace trireme::cuda
