#include "trainer/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <thread>

#include "base/error.h"
#include "data/sources.h"
#include "strategy/work/random_work.h"

namespace trireme {
namespace {

constexpr uint64_t kSeed = 5;
constexpr int kCapacity = 3;  // samples of a shard, at most

// Samples in memory; one of them cannot be read, if `bad` is one.
class CountingSource : public Source {
 public:
  explicit CountingSource(int64_t samples, int64_t bad = -1)
      : Source({1, 1, 3}, samples), bad_(bad) {}
  int32_t label(int64_t index) const override { return int32_t(index % 7); }
  int64_t reads() const { return reads_; }
  void Read(int64_t index, std::span<float> out) const override {
    ++reads_;
    if (index == bad_) throw Error("sample {} is rotten", index);
    for (size_t i = 0; i < out.size(); ++i) out[i] = float(index) + 0.25f * float(i);
  }

 private:
  const int64_t bad_;
  mutable std::atomic<int64_t> reads_ = 0;
};

struct Scene {
  explicit Scene(int64_t bad = -1) : source(50, bad) {}
  Feed feed() const {
    return Feed::ForTraining(source, Normalizer::Identity(3), DataOptions(), kSeed);
  }
  // 5 steps an epoch, the last of two samples: most of its shards are empty.
  Plan plan{.samples = 50, .batch = 12, .shards = 5, .steps = 40};
  CountingSource source;
};

// Threads that advance in step and take what is theirs; what is shown at each position is what the
// feed shows there, and nobody holds more than the queue has.
TEST(Generator, WorkersInStepGetTheirShardsFromOneQueue) {
  for (const int threads : {0, 2}) {
    for (const int workers : {1, 3, 8}) {
      const Scene scene;
      const Feed feed = scene.feed();
      constexpr int64_t kFirst = 3;  // resumed there
      Generator generator(scene.feed(), scene.plan, kCapacity, 2, threads);
      std::barrier step_is_over(workers);
      std::atomic<int64_t> samples = 0;
      const auto work = [&](int worker) {
        RandomWork source(scene.plan, worker, workers, kSeed);
        Work own;
        std::vector<int64_t> numbers;
        std::vector<float> inputs(3 * kCapacity);
        std::vector<int32_t> labels(kCapacity);
        for (int64_t step = kFirst; source.Next(nullptr, step, own) == Turn::kStep; ++step) {
          for (const Shard& shard : own.shards) {
            if (!shard.size()) continue;
            const Generator::Samples got = generator.Take(step, shard.index);
            numbers.push_back(got.number);
            const Positions range{own.epoch, shard.begin, shard.end};
            EXPECT_EQ(got.range, range);
            feed.Fill(range, inputs.data(), labels.data());
            ASSERT_EQ(int64_t(got.labels.size()), range.count());
            EXPECT_TRUE(std::equal(got.labels.begin(), got.labels.end(), labels.begin()));
            EXPECT_TRUE(std::equal(got.inputs.begin(), got.inputs.end(), inputs.begin()));
            samples += range.count();
          }
          step_is_over.arrive_and_wait();
          for (const int64_t number : numbers) generator.Release(number);
          numbers.clear();
        }
      };
      {
        std::vector<std::jthread> all;
        for (int w = 0; w < workers; ++w) all.emplace_back(work, w);
      }
      EXPECT_EQ(samples, PositionsOf(scene.plan) - kFirst * scene.plan.batch);
      const LoaderRecord record = generator.record();
      EXPECT_EQ(record.threads, std::max(1, threads));
      EXPECT_GT(record.requests, scene.plan.steps);
      EXPECT_GE(record.full, 0);
    }
  }
}

// Alone it fetches until its queue is full, and no more.
TEST(Generator, TheQueueIsBoundedAndShown) {
  struct Shown : SpanSink {
    void BeginStep(int64_t) override {}
    void Add(Track track, SpanKind kind, double, double, int64_t, int part) override {
      EXPECT_EQ(track, Track::kQueue);
      EXPECT_EQ(kind, SpanKind::kQueue);
      ready.push_back(part);
    }
    std::vector<int> ready;
  } shown;
  const Scene scene;
  Generator generator(scene.feed(), scene.plan, kCapacity, 2, 0);
  generator.ShowQueue(&shown);
  std::vector<int64_t> numbers;
  for (int64_t step = 0; step < 2; ++step) {
    for (int shard = 0; shard < 5; ++shard) numbers.push_back(generator.Take(step, shard).number);
  }
  EXPECT_EQ(scene.source.reads(), 24);  // two steps
  for (const int64_t number : numbers) generator.Release(number);
  generator.Take(2, 0);
  generator.ShowQueue(nullptr);
  ASSERT_GE(shown.ready.size(), 22u);
  EXPECT_EQ(*std::min_element(shown.ready.begin(), shown.ready.end()), 0);
  EXPECT_LE(*std::max_element(shown.ready.begin(), shown.ready.end()), 24);
}

TEST(Generator, WhatFetchingThrowsEveryWorkerHears) {
  const Scene scene(0);
  Generator generator(scene.feed(), scene.plan, kCapacity, 2, 0);
  const auto work = [&](int worker) {
    try {
      for (int64_t step = 0; step < 6; ++step) {
        for (const int shard : {worker, worker + 2}) {
          generator.Release(generator.Take(step, shard).number);
        }
        if (worker == 0) generator.Release(generator.Take(step, 4).number);
      }
      ADD_FAILURE() << "nobody has heard of it";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("sample 0 is rotten"), std::string::npos);
    }
  };
  std::jthread zero(work, 0), one(work, 1);
}

}  // namespace
}  // namespace trireme
