#pragma once
// Whole runs on a pretended device.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>

#include "base/files.h"
#include "pretend/engine.h"
#include "trainer/train.h"

namespace trireme {

inline MakeBackend OnPretendedDevice(std::atomic<int>* announced = nullptr) {
  return [announced](const BackendNeeds& needs) {
    if (!needs.trains) return HostEngine().make(Precision::kF32, {}, needs);
    Backend backend;
    auto device = std::make_unique<PretendDevice>();
    backend.engine = std::make_unique<PretendEngine>(*device, needs.threads, announced);
    backend.device = std::move(device);
    return backend;
  };
}

class PretendRuns : public testing::Test {
 protected:
  // Trains in the folder `name` (goes on if it is there) and gives the end result.
  Summary Run(const std::string& name, const Recipe& recipe, const MakeBackend& make_backend) {
    const std::string path = folder_ / name;
    RunDirectory directory =
        Exists(path) ? RunDirectory::Resume(path) : RunDirectory::Create(path, "");
    const Job job = PrepareJob(recipe, make_backend);
    Progress progress(ProgressStyle::kQuiet, log_);
    Summary summary;
    const Log log(log_);
    TransportOptions transport = job.recipe.transport;
    Launcher launcher(transport, true, {});
    const auto report = [&](const Outcome& outcome) { summary = outcome.summary; };
    Train(job, {.directory = &directory,
                .progress = progress,
                .signals = signals_,
                .log = log,
                .launcher = launcher,
                .report = report});
    return summary;
  }

  ~PretendRuns() override { close(log_file_); }
  std::string Said() const { return ReadFile(folder_ / "log"); }  // by all runs until now

  TemporaryDirectory folder_;
  const int log_file_ =
      open((folder_ / "log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  LogOutput log_{log_file_};
  Signals signals_;
};

}  // namespace trireme
