// Pictures per second from files to what a network is shown: decoding, a random part resized,
// mirrored every other time, normalised.
#include <atomic>
#include <map>
#include <set>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "data/feed.h"
#include "data/images.h"
#include "data/pack.h"

namespace trireme {
namespace {

constexpr int kPackSide = 256;
constexpr Flag kFlags[] = {
    {"--size", "N", "width and height in pixels of what the network sees (default: 224)"},
    kThreadsFlag,
    kRepeatFlag,
    kBenchJsonFlag,
};
constexpr Place kPlaces[] = {
    {"DIR", Place::kRequired,
     "class folders of images, as for images:DIR; the training part is read"}};

// Seconds that some threads need to read every picture once, for another epoch each time.
double SecondsOf(const Feed& feed, Team& team, int64_t epoch) {
  std::vector<std::vector<float>> samples(team.size());
  for (auto& sample : samples) sample.resize(size_t(feed.shape().size()));
  std::atomic<int64_t> next = 0;
  const Stopwatch watch;
  team.Run([&](int thread) {
    int32_t label = 0;
    for (int64_t at = next++; at < feed.size(); at = next++) {
      feed.Fill({.epoch = epoch, .begin = at, .end = at + 1}, samples[thread].data(), &label);
    }
  });
  return watch.seconds();
}

struct Subject {
  std::string from;
  DataSet data;
};

int Run(const Args& args, Process& process) {
  DataOptions options{.augment = "random-resized-crop,flip"};
  options.normalize = "imagenet";
  options.size = args.Number("--size", 224);
  if (options.size < 1 || options.size > 4096) {
    throw UsageError("--size must be between 1 and 4096, got {}", options.size);
  }
  const std::string folder = args.Required("DIR");
  const TemporaryDirectory temporary;
  const std::string pack = temporary / "pixels.pack";
  WritePack(folder, options, kPackSide, pack);
  Subject subjects[2];
  subjects[0] = {"files", OpenImages(folder, options, {})};
  subjects[1] = {fmt::format("pack of {} px", kPackSide), OpenPack(pack, options, {})};

  const int repeat = RepeatOf(args, 5);
  const std::set<int> counts{1, ThreadsOf(args)};
  std::map<int, Team> teams;  // as long-lived as a loader's threads, so that they find their cores
  for (const int count : counts) teams.try_emplace(count, count);
  std::vector<std::vector<double>> seconds(2 * counts.size());
  for (int i = 0; i <= repeat; ++i) {  // in turns, so that all see the same noise
    size_t row = 0;
    for (const Subject& subject : subjects) {
      const Normalizer normalizer = MakeNormalizer(*subject.data.train, options);
      const Feed feed = Feed::ForTraining(*subject.data.train, normalizer, options, /*seed=*/0);
      for (const int count : counts) {
        const double time = SecondsOf(feed, teams.at(count), i);
        if (i > 0) seconds[row].push_back(time);  // the first brings the files into memory
        ++row;
      }
    }
  }
  BenchTable table;
  size_t row = 0;
  for (const Subject& subject : subjects) {
    for (const int count : counts) {
      const double time = Median(seconds[row++]) / double(subject.data.train->size());
      table.Add({{"what", "images"},
                 {"from", subject.from},
                 {"size", options.size},
                 {"threads", count},
                 {"ms", time * 1e3},
                 {"images_per_s", 1 / time, 1}});
    }
  }
  process.out.Write(table.Text(args.Has("--json")));
  return 0;
}

}  // namespace

extern const Command kBenchImages;
const Command kBenchImages = {
    .name = "bench images",
    .summary = "measure images per second: decoded, a random part resized, mirrored, normalised",
    .usage = "trireme bench images DIR [--size N] [flags]",
    .examples =
        "trireme bench images photos                  # from files and from a pack\n"
        "trireme bench images photos --threads 4 --json\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
