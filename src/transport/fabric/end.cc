#include "transport/fabric/end.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <mutex>
#include <utility>

#include "base/proc_file.h"
#include "base/text.h"
#include "transport/fabric/library.h"
#include "transport/memory/image.h"

namespace trireme {
namespace {

constexpr int kMostAddress = 255;  // bytes

// Where the provider shm works: it maps a name of this machine and copies by numbers of processes.
std::string OwnProcesses() {
  char space[64] = "";
  static_cast<void>(readlink("/proc/self/ns/pid", space, sizeof(space) - 1));
  return fmt::format("{} {}", Trim(ReadProcFile("/proc/sys/kernel/random/boot_id").value_or("")),
                     space);
}

class FabricEnd final : public BulkEnd {
 public:
  FabricEnd(const std::string& provider, const std::string& host)
      : library_(FabricLibrary::Get()), table_(library_.table()), provider_(provider) {
    // Providers are looked for when the first end is opened.
    static std::mutex mutex;
    std::lock_guard lock(mutex);
    const KeptSignals kept;
    const int error = table_.open(provider.c_str(), host.c_str(), &end_);
    if (error != 0) {
      throw Error("the provider {} of {} cannot be used: {}", provider, library_.Name(),
                  library_.Explain(error));
    }
  }
  ~FabricEnd() override { table_.close(end_); }

  // The provider's own, behind a line that says among which processes it counts: nothing where
  // that does not matter.
  std::string address() override {
    char bytes[kMostAddress];
    int count = sizeof(bytes);
    Check(table_.address(end_, bytes, &count), "fi_getname");
    return Scope() + '\n' + std::string(bytes, size_t(count));
  }

  void Reach(const std::string& address) override {
    const size_t line = address.find('\n');
    if (line == address.npos || address.size() - line - 1 > size_t(kMostAddress)) {
      throw Error("the other end sent no address of the provider {}", provider_);
    }
    if (address.substr(0, line) != Scope()) {
      throw Error("the provider {} needs both ends on one machine, and in one PID namespace",
                  provider_);
    }
    Check(table_.reach(end_, address.data() + line + 1, int(address.size() - line - 1)),
          "fi_av_insert");
  }

  void Write(std::span<const std::byte> from, BulkPlace to, const BulkWatch& watch) override {
    const TriremeFabricWatch looks = Looks(watch);
    Finish(table_.write(end_, from.data(), from.size(), to.at, to.key, &looks), "fi_write");
  }
  void Read(std::span<std::byte> into, BulkPlace from, const BulkWatch& watch) override {
    const TriremeFabricWatch looks = Looks(watch);
    Finish(table_.read(end_, into.data(), into.size(), from.at, from.key, &looks), "fi_read");
  }

  std::unique_ptr<Shared> Share(std::span<std::byte> memory, bool writable) override {
    TriremeFabricPart part{};
    Check(table_.share(end_, memory.data(), memory.size(), writable, NewNumber(), &part),
          "fi_mr_reg");
    return std::make_unique<Part>(table_, part);
  }

  void Serve(double seconds) override {
    Check(table_.serve(end_, int(seconds * 1e3)), "fi_cq_sread");
  }
  void Wake() override { table_.wake(end_); }

 private:
  class Part final : public Shared {
   public:
    Part(const TriremeFabricTable& table, const TriremeFabricPart& part)
        : table_(table), part_(part) {}
    ~Part() override { table_.unshare(&part_); }
    BulkPlace place() const override { return {part_.at, part_.key}; }

   private:
    const TriremeFabricTable& table_;
    TriremeFabricPart part_;
  };

  std::string Scope() const { return table_.stays_here(end_) ? OwnProcesses() : ""; }

  // An exception must not cross the border; there is none in a look.
  static TriremeFabricWatch Looks(const BulkWatch& watch) {
    const auto goes_on = [](void* state) -> int {
      return static_cast<const BulkWatch*>(state)->goes_on();
    };
    const double patience_ms = std::min(watch.patience_s * 1e3, double(INT_MAX / 2));
    return {goes_on, const_cast<BulkWatch*>(&watch), int(patience_ms)};
  }
  void Check(int error, const char* what) const {
    if (error != 0) throw Error("{} over {}: {}", what, provider_, library_.Explain(error));
  }
  void Finish(int error, const char* what) const {
    if (error != 0) throw BulkBroken("{} over {}: {}", what, provider_, library_.Explain(error));
  }

  const FabricLibrary& library_;
  const TriremeFabricTable& table_;
  const std::string provider_;
  TriremeFabricEnd* end_ = nullptr;
};

}  // namespace

std::unique_ptr<BulkEnd> OpenFabricEnd(const std::string& provider, const std::string& host) {
  return std::make_unique<FabricEnd>(provider, host);
}

}  // namespace trireme
