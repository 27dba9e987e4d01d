// What a device promises, on a card: skipped where there is none, with the reason.
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/denormals.h"
#include "base/error.h"
#include "base/random.h"
#include "engine/cuda/library.h"
#include "flat/arithmetic.h"
#include "flat/cpu/host.h"
#include "flat/device_check.h"
#include "flat/host_memory.h"
#include "flat/staging.h"
#include "flat/table_check.h"

namespace trireme::cuda {
namespace {

using Floats = std::vector<float>;

std::unique_ptr<Device> MakeCard(const EngineOptions& options = {}, int card = 0) {
  return OpenTable(TRIREME_CUDA_PLUGIN_FILE).make_device(card, options);
}

class CudaDeviceTest : public testing::Test {
 protected:
  void SetUp() override {
    static const Survey survey = AskInChild(TRIREME_CUDA_PLUGIN_FILE);
    if (!survey.problem.empty()) GTEST_SKIP() << survey.problem;
    card_ = MakeCard();
    queue_ = card_->NewQueue();
  }
  std::unique_ptr<Device> card_;
  std::unique_ptr<Queue> queue_;
};

TEST_F(CudaDeviceTest, KeepsItsPromises) { CheckDevice(*card_); }

TEST_F(CudaDeviceTest, TableComputesWhatItSays) {
  for (size_t n : {0, 1, 17, 1000, 300'001}) CheckTable(*card_, n, n % 2, n, false);
}

// An event that somebody holds is not recorded again.
TEST_F(CudaDeviceTest, HeldEventsStayTheirOwn) {
  std::vector<Event> held;
  for (int i = 0; i < 100; ++i) {
    held.push_back(queue_->Record());
    queue_->Record();  // nobody's: used again
  }
  for (size_t i = 0; i < held.size(); ++i) {
    for (size_t j = 0; j < i; ++j) EXPECT_NE(held[i].state(), held[j].state());
  }
  for (const Event& event : held) event.Wait();
}

TEST_F(CudaDeviceTest, MarksFireInOrderBetweenTheHostsMoments) {
  Buffer x(*card_, 1 << 24);
  queue_->Sync();
  constexpr double kOff = 1e-3;  // between the clocks of host and card, at most
  double last = Now();
  for (int i = 0; i < 20; ++i) {
    flat::Fill(*queue_, float(i), x);
    const Event mark = queue_->Mark();
    const double fired = mark.FiredAt();
    EXPECT_GE(fired, last - kOff);
    EXPECT_LE(fired, Now());
    EXPECT_EQ(fired, mark.FiredAt()) << "asked twice";
    last = fired;
  }
  EXPECT_GT(last, Now() - 60);
}

// Stretches with a page in common, some twice, that go in any order.
TEST_F(CudaDeviceTest, RegisteredMemoryMayShareAPage) {
  constexpr size_t kFloats = 10'000;
  Buffer x(*card_, kFloats);
  std::vector<float> memory(3 * kFloats + 16, 1);
  float* const start =
      reinterpret_cast<float*>((reinterpret_cast<uintptr_t>(memory.data()) + 63) / 64 * 64);
  const auto bytes = [&](size_t at, size_t size) {
    return std::as_writable_bytes(std::span(start + at, size));
  };
  const auto copy = [&](size_t at, float value) {
    flat::Fill(*queue_, value, x);
    flat::Get(*queue_, x, start + at);
    queue_->Sync();
    EXPECT_EQ(Floats(start + at, start + at + kFloats), Floats(kFloats, value));
  };
  HostRegistration first(*card_, bytes(0, kFloats));
  copy(0, 2);
  HostRegistration third(*card_, bytes(2 * kFloats, kFloats));
  {
    const auto other = MakeCard();
    HostRegistration again(*other, bytes(0, kFloats));
    HostRegistration second(*card_, bytes(kFloats, kFloats));
    for (size_t i = 0; i < 3; ++i) copy(i * kFloats, float(3 + i));
    first = HostRegistration();
    for (size_t i = 1; i < 3; ++i) copy(i * kFloats, float(6 + i));
  }
  copy(2 * kFloats, 9);
}

TEST_F(CudaDeviceTest, NoMemorySaysWhatIsUsed) {
  const auto error_of = [](Device& device, size_t floats) -> std::string {
    try {
      Buffer(device, floats);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  const std::string huge = error_of(*card_, size_t{1} << 44);
  EXPECT_NE(huge.find("has no memory for 64.0 TiB of weights"), huge.npos) << huge;
  EXPECT_NE(huge.find("are free; a smaller trainer.batch"), huge.npos) << huge;
  const auto small = MakeCard({.memory_mb = 8});
  Buffer half(*small, 1'000'000);
  const std::string full = error_of(*small, 1'500'000);
  EXPECT_NE(full.find("engine.memory_mb allows"), full.npos) << full;
  EXPECT_NE(full.find("weights, gradients, optimizer and sets of samples 3.8 MiB"), full.npos)
      << full;
  EXPECT_EQ(error_of(*small, 500'000), "");  // and it goes on
}

TEST_F(CudaDeviceTest, ACardThatIsNotThereIsAnError) { EXPECT_THROW(MakeCard({}, 99), Error); }

// Every rule, and all else whose formula leaves no order open.
TEST_F(CudaDeviceTest, ArithmeticHasTheProcessorsBits) {
  const DenormalsOff denormals;
  HostDevice host;
  const auto host_queue = host.NewQueue();
  constexpr size_t kSize = 10'007;
  const Random random(5);
  std::vector<Floats> drawn(4, Floats(kSize));
  uint64_t next = 0;
  for (Floats& each : drawn) {
    for (float& x : each) x = float(random.Uniform(next++));
  }
  for (float& x : drawn[0]) x -= 0.5f;  // gradients; what rules keep may be squares
  Floats decays(kSize / Layout::kAlignment + 1, 0.01f);
  using Work = std::function<void(Queue&, const std::vector<Slice>&, Slice scale, Slice decays)>;
  const auto run = [&](Device& device, Queue& queue, const Work& work) {
    std::vector<Buffer> buffers;
    const auto load = [&](const Floats& x) {
      buffers.emplace_back(device, x.size());
      flat::PutNow(queue, x, buffers.back());
      return buffers.back().slice();
    };
    std::vector<Slice> slices;
    for (const Floats& each : drawn) slices.push_back(load(each));
    Floats scale(UpdateScale::kSize);
    scale[UpdateScale::kFactor] = 0.7f;
    work(queue, slices, load(scale), load(decays));
    std::vector<uint32_t> bits;
    for (const Slice& slice : slices) {
      Floats x(slice.size);
      flat::GetNow(queue, slice, x);
      for (const float value : x) bits.push_back(std::bit_cast<uint32_t>(value));
    }
    return bits;
  };
  const auto compare = [&](const char* what, const Work& work) {
    EXPECT_TRUE(run(*card_, *queue_, work) == run(host, *host_queue, work)) << what;
  };
  for (const bool decay : {false, true}) {
    const auto some = [decay](Slice slice) { return decay ? slice : Slice{}; };
    for (const float momentum : {0.0f, 0.9f}) {
      for (const bool nesterov : {false, true}) {
        compare("sgd", [&](Queue& q, const std::vector<Slice>& s, Slice scale, Slice d) {
          const SgdRates rates{0.1f, momentum, nesterov};
          flat::Update(q, rates, scale, some(d), s[0], {s[1]}, s[3]);
        });
      }
    }
    for (const bool decoupled : {false, true}) {
      compare("adam", [&](Queue& q, const std::vector<Slice>& s, Slice scale, Slice d) {
        const AdamRates rates{0.02f, 0.9f, 0.1f, 0.99f, 0.01f, 1.25f, 1e-3f, decoupled, 0.5f};
        flat::Update(q, rates, scale, some(d), s[0], {s[1], s[2]}, s[3]);
      });
    }
    compare("adagrad", [&](Queue& q, const std::vector<Slice>& s, Slice scale, Slice d) {
      flat::Update(q, AdagradRates{0.02f, 1e-3f}, scale, some(d), s[0], {s[1]}, s[3]);
    });
  }
  compare("others", [](Queue& q, const std::vector<Slice>& s, Slice scale, Slice) {
    flat::Blend(q, 0.3f, s[0], -0.7f, s[1]);
    flat::Add(q, s[1], s[2]);
    flat::ElasticPull(q, 0.3f, s[0], s[3], s[1]);
    flat::Track(q, 0.1f, scale, s[3], s[2]);
    flat::SumInOrder(q, s[0], std::vector<Slice>{s[1], s[2]}, s[0]);
  });
}

}  // namespace
}  // namespace trireme::cuda
