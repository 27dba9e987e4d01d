#include "data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "data/sources.h"
#include "data/testing.h"

namespace trireme {
namespace {

// Memory for the slots of a loader.
struct Memory {
  Memory(int num_slots, int capacity, const SampleShape& shape) {
    for (int i = 0; i < num_slots; ++i) {
      inputs.emplace_back(capacity * shape.size(), -1.0f);
      labels.emplace_back(capacity, -1);
      mixes.emplace_back(capacity);
    }
  }
  std::vector<Slot> slots() {
    std::vector<Slot> all;
    for (size_t i = 0; i < inputs.size(); ++i) {
      all.push_back({.inputs = inputs[i], .labels = labels[i], .mixes = mixes[i]});
    }
    return all;
  }
  std::vector<std::vector<float>> inputs;
  std::vector<std::vector<int32_t>> labels;
  std::vector<std::vector<LabelMix>> mixes;
};

DataOptions Pictures(const char* augment) {
  return {.source = "synthetic:32x32x3:10:340", .augment = augment};
}

// Bytes and changes, or numbers and changes, as the values that they stand for.
std::vector<float> Drawn(const Feed& feed, bool numbers, int count, int num_slots, int threads) {
  const size_t values = static_cast<size_t>(feed.shape().size()), capacity = size_t(count);
  const auto slot_of = [&](auto& all, size_t i, size_t size) {
    return std::span(all).subspan(i * size, size);
  };
  std::vector<uint8_t> bytes(numbers ? 0 : num_slots * capacity * values);
  std::vector<int32_t> of_samples(numbers ? num_slots * capacity : 0);
  std::vector<int32_t> labels(num_slots * capacity);
  std::vector<SampleChange> changes(num_slots * capacity);
  std::vector<Slot> slots;
  for (size_t i = 0; i < size_t(num_slots); ++i) {
    slots.push_back({.inputs = {},
                     .labels = slot_of(labels, i, capacity),
                     .bytes = slot_of(bytes, i, numbers ? 0 : capacity * values),
                     .numbers = slot_of(of_samples, i, numbers ? capacity : 0),
                     .changes = slot_of(changes, i, capacity)});
  }
  const ByteLook look{feed.shape().height, feed.shape().width, feed.shape().channels,
                      feed.normalizer().scale().data(), feed.normalizer().shift().data()};
  Loader loader(feed, slots, threads);
  std::vector<float> all;
  std::vector<uint8_t> sample(values);
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t begin = 0; begin < feed.size(); begin += count) {
      loader.Want({epoch, begin, std::min(begin + count, feed.size())});
      const Filled& filled = loader.Take();
      const Slot& slot = slots[filled.slot];
      for (size_t i = 0; i < size_t(filled.count); ++i) {
        if (numbers) {
          const int64_t index = slot.numbers[i];
          int32_t label = -1;
          feed.source().GatherBytes({&index, 1}, {}, sample.data(), &label, nullptr);
          EXPECT_EQ(label, slot.labels[i]);
        } else {
          std::copy_n(slot.bytes.data() + i * values, values, sample.data());
        }
        all.resize(all.size() + values);
        DrawSample(sample.data(), look, slot.changes[i], all.data() + all.size() - values);
      }
      all.insert(all.end(), slot.labels.begin(), slot.labels.begin() + filled.count);
      loader.Release();
    }
  }
  return all;
}

// All samples and labels of some epochs, asked for in ranges of `count`.
std::vector<float> Consume(const Feed& feed, int count, int num_slots, int threads) {
  Memory memory(num_slots, count, feed.shape());
  Loader loader(feed, memory.slots(), threads);
  std::deque<Positions> ranges;
  for (int64_t epoch = 0; epoch < 2; ++epoch) {
    for (int64_t begin = 0; begin < feed.size(); begin += count) {
      ranges.push_back({epoch, begin, std::min(begin + count, feed.size())});
    }
  }
  std::vector<float> all;
  size_t next = 0;
  for (const Positions& range : ranges) {
    while (loader.HasRoom() && next < ranges.size()) loader.Want(ranges[next++]);
    const Filled& filled = loader.Take();
    EXPECT_EQ(filled.range, range);
    EXPECT_EQ(filled.count, range.count());
    const float* inputs = memory.inputs[filled.slot].data();
    all.insert(all.end(), inputs, inputs + filled.count * feed.shape().size());
    const int32_t* labels = memory.labels[filled.slot].data();
    all.insert(all.end(), labels, labels + filled.count);
    for (int i = 0; feed.mixes_labels() && i < filled.count; ++i) {
      all.push_back(float(memory.mixes[filled.slot][i].other));
      all.push_back(memory.mixes[filled.slot][i].share);
    }
    loader.Release();
  }
  return all;
}

TEST(Loader, ContentsDoNotDependOnThreadsSlotsOrAugmentation) {
  for (const char* augment : {"none", "crop-flip", "flip,randaugment,mixup,cutmix"}) {
    const DataOptions options = Pictures(augment);
    const DataSet data = OpenData(options, 5);
    const Normalizer normalizer = FitNormalizer(*data.train, "standard");
    const Feed feed = Feed::ForTraining(*data.train, normalizer, options, 5);
    const std::vector<float> expected = Consume(feed, 100, 1, 0);
    EXPECT_EQ(expected.size(), 2 * 340 * (32 * 32 * 3 + (feed.mixes() ? 3u : 1u)));
    for (const int threads : {1, 2, 4}) {
      for (const int slots : {1, 3}) EXPECT_EQ(Consume(feed, 100, slots, threads), expected);
    }
  }
}

// The words of the help: a share of another sample, as it is at its own place in the epoch.
TEST(Loader, SamplesAreMixedWithOthersOfTheEpoch) {
  DataOptions options = Pictures("flip,pad-crop,mixup,cutmix");
  options.mixup_alpha = 1;
  const DataSet data = OpenData(options, 5);
  const Normalizer normalizer = FitNormalizer(*data.train, "standard");
  const Feed feed = Feed::ForTraining(*data.train, normalizer, options, 5);
  EXPECT_TRUE(feed.mixes_labels());
  DataOptions bare = options;
  bare.augment = "flip,pad-crop";
  const Feed plain = Feed::ForTraining(*data.train, normalizer, bare, 5);
  const Augment augment(options.augment, 5, {.shape = data.shape, .mixup_alpha = 1}, normalizer);
  const auto size = size_t(feed.size()), values = size_t(data.shape.size());
  std::vector<float> inputs(size * values), unmixed(size * values);
  std::vector<int32_t> labels(size), own(size);
  std::vector<LabelMix> mixes(size);
  const Positions all{.epoch = 1, .begin = 0, .end = feed.size()};
  feed.Fill(all, {.inputs = inputs, .labels = labels, .mixes = mixes});
  plain.Fill(all, unmixed.data(), own.data());
  std::vector<size_t> position_of(size);
  for (size_t i = 0; i < size; ++i) position_of[feed.order().At(1, int64_t(i))] = i;
  int mixed = 0;
  for (size_t i = 0; i < size; ++i) {
    const SampleMix mix = augment.Mix(1, feed.order().At(1, int64_t(i)), feed.size());
    const size_t other = position_of[size_t(mix.other)];
    std::vector<float> want(unmixed.begin() + std::ptrdiff_t(i * values),
                            unmixed.begin() + std::ptrdiff_t((i + 1) * values));
    augment.Apply(mix, std::span(unmixed).subspan(other * values, values), want);
    ASSERT_TRUE(std::ranges::equal(want, std::span(inputs).subspan(i * values, values)));
    const bool larger = mix.share > 0.5f;
    EXPECT_EQ(labels[i], larger ? own[other] : own[i]);
    if (mix.share > 0) {
      EXPECT_EQ(mixes[i].other, larger ? own[i] : own[other]);
    }
    EXPECT_EQ(mixes[i].share, larger ? 1 - mix.share : mix.share);
    EXPECT_LE(mixes[i].share, 0.5f);
    mixed += mix.share > 0;
  }
  EXPECT_GT(mixed, int(size) * 8 / 10);
}

// Numbers to predict are mixed like the values.
TEST(Loader, LabelsThatAreNumbersAreMixedToOne) {
  DataOptions options = Pictures("mixup");
  options.mixup_alpha = 1;
  const DataSet data = OpenData(options, 5);
  class Numbers : public Source {
   public:
    explicit Numbers(const Source& whole) : Source(whole.shape(), whole.size()), whole_(whole) {}
    int32_t label(int64_t index) const override { return LabelOfNumber(float(index)); }
    void Read(int64_t index, std::span<float> out) const override { whole_.Read(index, out); }

   private:
    const Source& whole_;
  } const numbers(*data.train);
  Normalizer normalizer = Normalizer::Identity(3);
  normalizer.SetTarget({.mean = 100, .deviation = 10});
  const Feed feed = Feed::ForTraining(numbers, normalizer, options, 5);
  EXPECT_TRUE(feed.mixes());
  EXPECT_FALSE(feed.mixes_labels());
  const Augment augment("mixup", 5, {.shape = data.shape, .mixup_alpha = 1}, normalizer);
  std::vector<float> inputs(size_t(100 * data.shape.size()));
  std::vector<int32_t> labels(100);
  feed.Fill({.epoch = 2, .begin = 0, .end = 100}, inputs.data(), labels.data());
  for (int64_t i = 0; i < 100; ++i) {
    const int64_t sample = feed.order().At(2, i);
    const SampleMix mix = augment.Mix(2, sample, feed.size());
    const double mixed = (1 - mix.share) * double(sample) + mix.share * double(mix.other);
    EXPECT_NEAR(NumberOfLabel(labels[size_t(i)]), (mixed - 100) / 10, 1e-4);
  }
}

TEST(Loader, BytesAndNumbersStandForTheSameValues) {
  TemporaryFolder folder;
  for (const auto& [name, samples] : {std::pair{"train", 300u}, std::pair{"t10k", 10u}}) {
    folder.Write(std::string(name) + "-images-idx3-ubyte",
                 Idx({samples, 20, 12}, SomeBytes(samples * 20 * 12)));
    folder.Write(std::string(name) + "-labels-idx1-ubyte", Idx({samples}, SomeLabels(samples, 10)));
  }
  for (const char* augment : {"none", "crop-flip", "erase,flip,pad-crop",
                              "flip,pad-crop,randaugment,colour-jitter,erase"}) {
    for (const int64_t limit : {0, 130}) {  // all, or some: a subset
      const DataOptions options{
          .source = "idx:" + folder.path(), .limit = limit, .augment = augment};
      const DataSet data = OpenData(options, 5);
      ASSERT_TRUE(data.train->has_bytes());
      const Normalizer normalizer = FitNormalizer(*data.train, "standard");
      const Feed feed = Feed::ForTraining(*data.train, normalizer, options, 5);
      EXPECT_EQ(feed.changes(), augment != std::string("none"));
      const std::vector<float> values = Consume(feed, 70, 1, 0);
      for (const int threads : {0, 3}) {
        EXPECT_EQ(Drawn(feed, false, 70, 2, threads), values) << augment << threads;
        EXPECT_EQ(Drawn(feed, true, 70, 2, threads), values) << augment << threads;
      }
    }
  }
}

TEST(Loader, ShowsTheSampleOfThePermutedPosition) {
  const DataOptions options;
  const DataSet data = OpenData(options, 5);
  const Feed feed = Feed::ForTraining(*data.train, Normalizer::Identity(4), options, 5);
  const Order order(5, data.train->size(), true);
  Memory memory(2, 4, data.shape);
  Loader loader(feed, memory.slots(), 0);
  loader.Want({3, 70, 74});
  const Filled& filled = loader.Take();
  for (int i = 0; i < 4; ++i) {
    std::vector<float> sample(4);
    data.train->Read(order.At(3, 70 + i), sample);
    EXPECT_EQ(memory.labels[filled.slot][i], data.train->label(order.At(3, 70 + i)));
    for (int j = 0; j < 4; ++j) EXPECT_EQ(memory.inputs[filled.slot][4 * i + j], sample[j]);
  }
}

TEST(Loader, EvaluationTakesEverySampleAsItIs) {
  const DataOptions options = Pictures("crop-flip");
  const DataSet data = OpenData(options, 5);
  const Normalizer normalizer = FitNormalizer(*data.train, "standard");
  const Feed feed = Feed::ForEvaluation(*data.test, normalizer);
  std::vector<float> inputs(data.shape.size()), expected(data.shape.size());
  int32_t label = -1;
  for (int64_t i = 0; i < feed.size(); ++i) {
    feed.Fill({0, i, i + 1}, inputs.data(), &label);
    data.test->Read(i, expected);
    normalizer.Apply(expected, expected.data());
    ASSERT_EQ(inputs, expected);
    ASSERT_EQ(label, data.test->label(i));
  }
}

TEST(Loader, HandsOutSlotsInTurnAndKeepsThemUntilReleased) {
  const DataOptions options;
  const DataSet data = OpenData(options, 1);
  const Feed feed = Feed::ForTraining(*data.train, Normalizer::Identity(4), options, 1);
  for (const int threads : {0, 2}) {
    Memory memory(3, 8, data.shape);
    Loader loader(feed, memory.slots(), threads);
    for (int64_t i = 0; i < 3; ++i) loader.Want({0, 8 * i, 8 * i + 8});
    EXPECT_FALSE(loader.HasRoom());
    EXPECT_EQ(loader.Take().slot, 0);
    EXPECT_EQ(loader.Take().slot, 1);
    EXPECT_FALSE(loader.HasRoom());
    const std::vector<float> second = memory.inputs[1];
    loader.Release();
    EXPECT_TRUE(loader.HasRoom());
    loader.Want({0, 24, 27});
    EXPECT_EQ(loader.Take().slot, 2);
    const Filled& small = loader.Take();
    EXPECT_EQ(small.slot, 0);
    EXPECT_EQ(small.count, 3);
    EXPECT_EQ(memory.inputs[1], second);
  }
}

// Fails or dawdles at one sample.
class OddSource : public Source {
 public:
  OddSource(int64_t bad, std::chrono::milliseconds delay)
      : Source({1, 1, 70'000}, 100), bad_(bad), delay_(delay) {}
  int32_t label(int64_t) const override { return 0; }
  int reads() const { return reads_; }
  void Read(int64_t index, std::span<float> out) const override {
    std::fill(out.begin(), out.end(), static_cast<float>(index));
    std::this_thread::sleep_for(delay_);
    ++reads_;
    if (index == bad_) throw Error("sample {} is rotten", index);
  }

 private:
  int64_t bad_;
  std::chrono::milliseconds delay_;
  mutable std::atomic<int> reads_ = 0;
};

TEST(Loader, ErrorsArriveAtTheRequestThatHasThem) {
  for (const int threads : {0, 1, 3}) {
    const OddSource source(13, {});
    const Feed feed = Feed::ForEvaluation(source, Normalizer::Identity(70'000));
    Memory memory(3, 10, source.shape());
    Loader loader(feed, memory.slots(), threads);
    for (int64_t i = 0; i < 3; ++i) loader.Want({0, 10 * i, 10 * i + 10});
    EXPECT_EQ(loader.Take().count, 10);
    EXPECT_TRUE(Holds(Refusal([&] { loader.Take(); }), {"sample 13 is rotten"}));
    EXPECT_TRUE(Holds(Refusal([&] { loader.Take(); }), {"sample 13 is rotten"}));
  }
}

// Reading one sample takes until two others are read.
class HeldUpSource : public Source {
 public:
  HeldUpSource() : Source({1, 1, 70'000}, 8) {}
  int32_t label(int64_t) const override { return 0; }
  bool held_up() const { return held_up_; }
  void Read(int64_t index, std::span<float>) const override {
    std::unique_lock lock(mutex_);
    if (index == 5)
      held_up_ = !changed_.wait_for(lock, std::chrono::seconds(50), [&] { return read_ == 2; });
    if (index > 5) ++read_;
    changed_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int read_ = 0;
  mutable std::atomic<bool> held_up_ = false;
};

// Both threads begin with a share; whoever is ready first takes over from the other one.
TEST(Loader, ASlowSampleHoldsUpOnlyThoseThatWereClaimedWithIt) {
  const HeldUpSource source;
  Memory memory(1, 8, source.shape());
  Loader loader(Feed::ForEvaluation(source, Normalizer::Identity(70'000)), memory.slots(), 2);
  loader.Want({0, 0, 8});
  EXPECT_EQ(loader.Take().count, 8);
  EXPECT_FALSE(source.held_up());
}

TEST(Loader, EndsWhileRequestsAreOpen) {
  for (const int threads : {0, 1, 4}) {
    const OddSource source(-1, std::chrono::milliseconds(100));
    const Feed feed = Feed::ForEvaluation(source, Normalizer::Identity(70'000));
    Memory memory(10, 10, source.shape());
    {
      Loader loader(feed, memory.slots(), threads);
      for (int64_t i = 0; i < 10; ++i) loader.Want({0, 10 * i, 10 * i + 10});
    }
    EXPECT_LT(source.reads(), 100);  // those that were being read, not those still waiting
  }
}

// Small samples; one is read only while another is being read.
class MeetingSource : public Source {
 public:
  MeetingSource() : Source({1, 1, 4}, 100) {}
  int32_t label(int64_t) const override { return 0; }
  void Read(int64_t index, std::span<float> out) const override {
    std::fill(out.begin(), out.end(), static_cast<float>(index));
    ++inside_;
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (inside_ < 2 && !met_ && std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
    met_ = met_ || inside_ >= 2;
    --inside_;
  }
  bool met() const { return met_; }

 private:
  mutable std::atomic<int> inside_ = 0;
  mutable std::atomic<bool> met_ = false;
};

// However small the samples are: their threads share them.
TEST(Loader, PretendedDecodingIsSharedByThreadsAndChangesNothing) {
  const MeetingSource source;
  Feed feed = Feed::ForTraining(source, Normalizer::Identity(4), {}, 5);
  feed.PretendDecoding(1e-3);
  const auto begin = std::chrono::steady_clock::now();
  const std::vector<float> shared = Consume(feed, 50, 1, 8);
  EXPECT_TRUE(source.met());
  EXPECT_EQ(Consume(feed, 50, 1, 1), shared);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(200));  // of one
  feed.PretendDecoding(0);
  EXPECT_EQ(Consume(feed, 50, 1, 0), shared);
}

TEST(Loader, CountsTheTimeOfWaiting) {
  for (const int threads : {0, 2}) {
    const OddSource source(-1, std::chrono::milliseconds(20));
    const Feed feed = Feed::ForEvaluation(source, Normalizer::Identity(70'000));
    Memory memory(1, 10, source.shape());
    double waited_s = 0;
    for (int attempt = 0; attempt < 20 && waited_s <= 0.08; ++attempt) {
      Loader loader(feed, memory.slots(), threads);
      loader.Want({0, 0, 10});  // a busy machine may let them be read before the next line
      loader.Take();
      waited_s = loader.numbers().waited_s;
      if (threads == 0) continue;
      loader.Release();
      loader.Want({0, 10, 20});
      while (loader.numbers().ready < 1) std::this_thread::yield();
      const double before = loader.numbers().waited_s;
      loader.Take();
      EXPECT_EQ(loader.numbers().waited_s, before);  // it was read meanwhile
    }
    EXPECT_GT(waited_s, 0.08);  // at least five samples in a row
  }
}

// Sleeping samples and no computing: threads are added, and what is delivered is the same.
TEST(Loader, AddsThreadsWhileItIsWaitedFor) {
  const DataSet data = OpenData({}, 5);
  Feed feed = Feed::ForTraining(*data.train, Normalizer::Identity(4), {}, 5);
  const std::vector<float> expected = Consume(feed, 1, 1, 0);
  feed.PretendDecoding(3e-3);
  Memory memory(2, 1, data.shape);
  Loader loader(feed, memory.slots(), LoaderThreads{1, 4});
  const int64_t count = 2 * feed.size();
  std::vector<float> all;
  int most = 0;
  for (int64_t taken = 0, wanted = 0; taken < count; ++taken) {
    for (; loader.HasRoom() && wanted < count; ++wanted) {
      const int64_t at = wanted % feed.size();
      loader.Want({wanted / feed.size(), at, at + 1});
    }
    const Filled& filled = loader.Take();
    const auto& inputs = memory.inputs[filled.slot];
    all.insert(all.end(), inputs.begin(), inputs.end());
    all.push_back(static_cast<float>(memory.labels[filled.slot][0]));
    loader.Release();
    most = std::max(most, loader.numbers().threads);
  }
  EXPECT_EQ(all, expected);
  EXPECT_GT(most, 1);
}

TEST(Loader, CountsWhatLiesReady) {
  const OddSource source(-1, {});
  const Feed feed = Feed::ForEvaluation(source, Normalizer::Identity(70'000));
  Memory memory(3, 10, source.shape());
  Loader loader(feed, memory.slots(), 2);
  for (int64_t i = 0; i < 3; ++i) loader.Want({0, 10 * i, 10 * i + 10});
  while (loader.numbers().ready < 3) std::this_thread::yield();
  for (const double sum : {3, 5, 6}) {
    loader.Take();
    EXPECT_EQ(loader.numbers().ready_at_take, sum);
  }
  const LoaderNumbers numbers = loader.numbers();
  EXPECT_EQ(numbers.taken, 3);
  EXPECT_EQ(numbers.ready, 0);
  EXPECT_GT(numbers.ready_s, 0);
  EXPECT_LT(numbers.ready_s, 3 * numbers.seconds);
}

TEST(Loader, TellsWhatFetchingSpendsItsTimeOn) {
  for (const int threads : {0, 2}) {
    const OddSource source(-1, std::chrono::milliseconds(1));
    Feed feed = Feed::ForEvaluation(source, Normalizer::Identity(70'000));
    feed.PretendDecoding(2e-3);
    Memory memory(1, 10, source.shape());
    Loader loader(feed, memory.slots(), threads);
    loader.Want({0, 0, 10});
    loader.Take();
    const FetchTimes fetched = loader.numbers().fetched;
    EXPECT_GE(fetched.read, 0.01);
    EXPECT_GE(fetched.decode, 0.02);
    EXPECT_EQ(fetched.resize, 0);
    EXPECT_GT(fetched.cpu, 0);
    EXPECT_LT(fetched.cpu, fetched.Total());  // sleeping is no work
  }
}

TEST(ChooseLoaderThreads, KeepsSmallRequestsInTheStep) {
  EXPECT_EQ(ChooseLoaderThreads("auto", 16, 8, 8, false).most, 0);
  EXPECT_EQ(ChooseLoaderThreads("auto", 1 << 20, 8, 8, false).first, 1);
  EXPECT_EQ(ChooseLoaderThreads("auto", 1 << 20, 1, 1, false).most, 0);
  EXPECT_EQ(ChooseLoaderThreads(3, 16, 1, 1, true).first, 3);
  EXPECT_EQ(ChooseLoaderThreads(3, 16, 1, 1, true).most, 3);
  EXPECT_TRUE(
      Holds(Refusal([] { ChooseLoaderThreads(5000, 16, 1, 1, false); }), {"data.threads", "5000"}));
}

TEST(ChooseLoaderThreads, TakesTheCoresThatComputingLeaves) {
  EXPECT_EQ(ChooseLoaderThreads("auto", 1 << 20, 8, 1, false).first, 7);
  EXPECT_EQ(ChooseLoaderThreads("auto", 1 << 20, 64, 1, false).most, 16);  // parts of a request
  EXPECT_EQ(ChooseLoaderThreads("auto", 1 << 17, 8, 1, false).first, 2);
}

TEST(ChooseLoaderThreads, DecodingBeginsWithTheCoresThatComputingLeaves) {
  EXPECT_EQ(ChooseLoaderThreads("auto", 16, 8, 6, true).first, 2);
  EXPECT_EQ(ChooseLoaderThreads("auto", 16, 8, 6, true).most, 8);
  EXPECT_EQ(ChooseLoaderThreads("auto", 16, 8, 8, true).first, 1);
  EXPECT_EQ(ChooseLoaderThreads("auto", 16, 1, 4, true).first, 1);
  EXPECT_EQ(ChooseLoaderThreads("auto", 16, 1, 4, true).most, 1);
}

}  // namespace
}  // namespace trireme
