#include "data/survey.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/label.h"
#include "base/random.h"
#include "base/team.h"

namespace trireme {
namespace {

constexpr int64_t kFewest = 64, kMostBlocks = 1024;  // samples that a thread takes at a time

uint64_t HashOf(std::span<const float> values) {
  uint64_t hash = values.size();
  for (const float value : values) hash = HashKey(hash, std::bit_cast<uint32_t>(value));
  return hash;
}

// Of a part: the hash of each sample, and whether it could be read.
struct Samples {
  std::vector<uint64_t> hashes;
  std::vector<uint8_t> read;
  std::vector<SampleShape> sizes;  // of pictures
};

// Values of all samples; block by block, so that sums do not depend on the threads.
Samples ReadAll(const Source& source, int threads, PartSurvey& part,
                ChannelStatistics* statistics) {
  Samples samples{std::vector<uint64_t>(size_t(source.size())),
                  std::vector<uint8_t>(size_t(source.size())),
                  std::vector<SampleShape>(source.cuts() ? size_t(source.size()) : 0)};
  const int64_t block_size = std::max(kFewest, (source.size() + kMostBlocks - 1) / kMostBlocks);
  const int64_t blocks = (source.size() + block_size - 1) / block_size;
  std::vector<std::pair<int64_t, std::string>> broken;
  std::atomic<int64_t> next = 0;
  std::mutex mutex;  // of what follows
  std::vector<ChannelStatistics> measured(statistics ? size_t(blocks) : 0, ChannelStatistics(0));
  Team team(threads);
  team.Run([&](int) {
    std::vector<float> values(size_t(source.shape().size()));
    for (int64_t block = next++; block < blocks; block = next++) {
      ChannelStatistics own(statistics ? source.shape().channels : 0);
      const int64_t end = std::min(source.size(), (block + 1) * block_size);
      for (int64_t i = block * block_size; i < end; ++i) {
        try {
          source.Read(i, values);
          if (source.cuts()) samples.sizes[size_t(i)] = source.StoredShape(i);
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          broken.emplace_back(i, error.what());
          continue;
        }
        samples.hashes[size_t(i)] = HashOf(values);
        samples.read[size_t(i)] = 1;
        for (size_t v = 0; statistics && v < values.size(); ++v) {
          own.Add(int(v) % source.shape().channels, values[v]);
        }
      }
      if (statistics) measured[size_t(block)] = std::move(own);
    }
  });
  for (const ChannelStatistics& block : measured) statistics->Add(block);
  std::sort(broken.begin(), broken.end());
  for (auto& [index, message] : broken) part.broken.push_back(std::move(message));
  return samples;
}

// The smallest, middle and largest of the pictures, by their pixels.
void NoteSizes(const Samples& samples, PartSurvey& part) {
  std::vector<SampleShape> sizes;
  for (size_t i = 0; i < samples.sizes.size(); ++i) {
    if (samples.read[i]) sizes.push_back(samples.sizes[i]);
  }
  if (sizes.empty()) return;
  std::sort(sizes.begin(), sizes.end(), [](const SampleShape& a, const SampleShape& b) {
    return std::pair(a.size(), a.width) < std::pair(b.size(), b.width);
  });
  part.sizes = {sizes.front(), sizes[sizes.size() / 2], sizes.back()};
}

}  // namespace

DataSurvey SurveyData(const DataSet& data, int threads) {
  DataSurvey survey{.values = ChannelStatistics(data.shape.channels)};
  std::unordered_map<uint64_t, int32_t> seen;  // of the training part, with the first one's class
  std::unordered_map<uint64_t, bool> contradicted;
  const auto look = [&](const char* name, const Source* source) {
    if (source == nullptr) return;
    const bool training = survey.parts.empty();
    PartSurvey& part = survey.parts.emplace_back();
    part.name = name;
    part.samples = source->size();
    part.classes.resize(data.classes.size());
    const bool numbers = data.task == Task::kRegression;
    if (numbers) part.target = ChannelStatistics(1);
    Samples samples{.read = std::vector<uint8_t>(size_t(source->size()))};
    if (threads > 0) {
      samples = ReadAll(*source, threads, part, training ? &survey.values : nullptr);
    }
    std::unordered_map<uint64_t, int32_t> own;
    for (int64_t i = 0; i < source->size(); ++i) {
      const int32_t label = source->label(i);
      if (numbers) {
        part.target.Add(0, NumberOfLabel(label));
      } else if (label >= 0) {
        ++part.classes[size_t(label)];
      }
      if (!samples.read[size_t(i)]) continue;
      const uint64_t hash = samples.hashes[size_t(i)];
      part.repeated += !own.emplace(hash, label).second;
      if (!training) part.in_training += seen.contains(hash);
      const auto known = seen.find(hash);
      const int32_t first = known != seen.end() ? known->second : own[hash];
      if (first != label) contradicted[hash] = true;
    }
    NoteSizes(samples, part);
    if (training) seen = std::move(own);
  };
  look("train", data.train.get());
  look("validation", data.validation.get());
  look("test", data.test.get());
  survey.contradictions = int64_t(contradicted.size());
  return survey;
}

}  // namespace trireme
