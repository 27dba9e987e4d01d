// Where the time of a step went, on a device whose work runs late and whose clock is pretended:
// what a part of a step takes shows up there and nowhere else.
#include <gtest/gtest.h>

#include <sstream>

#include "base/files.h"
#include "pretend/engine.h"
#include "pretend/group.h"
#include "record/json.h"
#include "trainer/train.h"

namespace trireme {
namespace {

// Longer than what is measured by samples, shorter than the events of a step take to fire: a step
// is never recorded as shorter than its parts.
constexpr double kTakes_s = 25e-6;
constexpr double kRounding_s = 1e-9;

MakeBackend OnDevice(const PretendDevice::Seconds& seconds, PretendWires* wires) {
  return [seconds, wires](const BackendNeeds& needs) {
    Backend backend;
    auto device = std::make_unique<PretendDevice>(seconds);
    backend.engine = std::make_unique<PretendEngine>(*device, needs.threads);
    if (wires) backend.groups = wires->Groups(*device, needs.place);
    backend.device = std::move(device);
    return backend;
  };
}

PretendDevice::Seconds Only(PretendWork slow) {
  return [slow](PretendWork work) { return work == slow ? kTakes_s : 0; };
}

// Of one rank in one epoch.
struct Parts {
  double forward, backward, update, waited, hidden;
  int64_t steps;
};

class PretendTimes : public testing::Test {
 protected:
  PretendTimes() {
    recipe_.model.name = "mlp:4-7-3";
    recipe_.trainer.batch = 12;
    recipe_.trainer.shards = 4;
    recipe_.trainer.epochs = 2;
    recipe_.trainer.threads = 1;
    recipe_.trainer.self_test = false;
    recipe_.trainer.check_steps = 0;
    recipe_.strategy.bucket_mb = 0.0001;  // a layer each
    recipe_.transport.ranks = 2;
  }

  std::vector<Parts> Run(const PretendDevice::Seconds& seconds, PretendWires* wires = nullptr) {
    const TemporaryDirectory folder;
    const std::string path = folder / "run";
    RunDirectory directory = RunDirectory::Create(path, "");
    const Job job = PrepareJob(recipe_, OnDevice(seconds, wires));
    Progress progress(ProgressStyle::kQuiet, log_);
    const Log log(log_);
    TransportOptions transport = job.recipe.transport;
    Launcher launcher(transport, true, {});
    const auto report = [](const Outcome&) {};
    Train(job, {.directory = &directory,
                .progress = progress,
                .signals = signals_,
                .log = log,
                .launcher = launcher,
                .report = report});
    std::vector<Parts> all = Read(path + "/metrics.jsonl");
    EXPECT_EQ(all.size(), size_t(recipe_.trainer.epochs * recipe_.transport.ranks));
    return all;
  }

  static std::vector<Parts> Read(const std::string& path) {
    std::vector<Parts> all;
    std::istringstream lines(ReadFile(path));
    int64_t before = 0;
    for (std::string line; std::getline(lines, line);) {
      const Json json = ParseJson(line, path);
      const int64_t step = json.At("step").AsInt();
      for (const Json& rank : json.At("ranks").Items()) {
        const auto at = [&](const char* key) { return rank.At(key).AsDouble(); };
        all.push_back({at("forward"), at("backward"), at("update"), at("communication_waited"),
                       at("communication_hidden"), step - before});
      }
      before = step;
    }
    return all;
  }

  Recipe recipe_;
  LogOutput log_;
  Signals signals_;
};

TEST_F(PretendTimes, ForwardIsForward) {
  for (const Parts& parts : Run(Only(PretendWork::kForward))) {
    EXPECT_NEAR(parts.forward, 2 * kTakes_s * double(parts.steps), kRounding_s);
    EXPECT_NEAR(parts.backward + parts.update + parts.waited + parts.hidden, 0, kRounding_s);
  }
}

TEST_F(PretendTimes, BackwardIsBackward) {
  for (const Parts& parts : Run(Only(PretendWork::kBackward))) {
    EXPECT_GT(parts.backward, 2 * kTakes_s * double(parts.steps));  // several buckets
    EXPECT_NEAR(parts.forward + parts.update + parts.waited + parts.hidden, 0, kRounding_s);
  }
}

TEST_F(PretendTimes, TheUpdateIsTheUpdate) {
  for (const Parts& parts : Run(Only(PretendWork::kUpdate))) {
    EXPECT_NEAR(parts.update, kTakes_s * double(parts.steps), kRounding_s);
    EXPECT_NEAR(parts.forward + parts.backward + parts.waited + parts.hidden, 0, kRounding_s);
  }
}

// On the way to the others and back.
TEST_F(PretendTimes, ABucketsWayIsExposedWhereNothingIsComputedMeanwhile) {
  for (const PretendWork way : {PretendWork::kGet, PretendWork::kPut}) {
    for (const std::string sum : {"shared", "ring"}) {
      recipe_.strategy.algorithm = sum == "ring" ? "ring" : "auto";
      for (const Parts& parts : Run(Only(way))) {
        EXPECT_GE(parts.waited, 2 * kTakes_s * double(parts.steps)) << sum;  // several buckets
        EXPECT_NEAR(parts.forward + parts.backward + parts.update + parts.hidden, 0, kRounding_s);
      }
    }
  }
}

TEST_F(PretendTimes, ABucketsWayIsHiddenBehindTheRestOfBackward) {
  const auto parts_of = [&](bool computes) {
    return Run([computes](PretendWork work) {
      if (work == PretendWork::kGet) return kTakes_s / 4;
      return computes && work == PretendWork::kBackward ? kTakes_s : 0;
    });
  };
  const std::vector<Parts> exposed = parts_of(false), hidden = parts_of(true);
  for (size_t i = 0; i < exposed.size(); ++i) {
    EXPECT_GT(hidden[i].hidden, kTakes_s / 4 * double(hidden[i].steps) - kRounding_s);
    EXPECT_LT(hidden[i].waited, exposed[i].waited);
    EXPECT_NEAR(hidden[i].waited + hidden[i].hidden, exposed[i].waited, kRounding_s);
  }
}

// Sums of devices among themselves: nobody waits for them but the queue of the update.
TEST_F(PretendTimes, ASumOfDevicesIsExposedOrHidden) {
  PretendWires wires;
  const auto parts_of = [&](bool computes) {
    return Run(
        [computes](PretendWork work) {
          if (work == PretendWork::kSum) return kTakes_s / 4;
          return computes && work == PretendWork::kBackward ? kTakes_s : 0;
        },
        &wires);
  };
  const std::vector<Parts> exposed = parts_of(false), hidden = parts_of(true);
  EXPECT_GT(wires.sums(), 0);
  for (size_t i = 0; i < exposed.size(); ++i) {
    EXPECT_GT(exposed[i].waited, kTakes_s / 4 * 2 * double(exposed[i].steps) - kRounding_s);
    EXPECT_NEAR(exposed[i].forward + exposed[i].backward + exposed[i].update + exposed[i].hidden, 0,
                kRounding_s);
    EXPECT_LT(hidden[i].waited, exposed[i].waited);
    EXPECT_NEAR(hidden[i].waited + hidden[i].hidden, exposed[i].waited, kRounding_s);
  }
}

// New weights that come while forward has begun are no computing.
TEST_F(PretendTimes, ForwardIsForwardWhileWeightsArrive) {
  recipe_.strategy.name = "sync-ps";
  recipe_.strategy.overlap = "both";
  recipe_.transport.ranks = 3;
  double forward = 0;
  for (const Parts& parts : Run(Only(PretendWork::kForward))) {
    forward += parts.forward;
    EXPECT_NEAR(parts.backward + parts.update + parts.waited + parts.hidden, 0, kRounding_s);
  }
  EXPECT_GT(forward, kTakes_s);
}

}  // namespace
}  // namespace trireme
