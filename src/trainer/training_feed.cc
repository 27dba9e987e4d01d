#include "trainer/training_feed.h"

#include <utility>

namespace trireme {

Feed TrainingFeed(const Job& job) {
  Feed feed =
      Feed::ForTraining(*job.data.train, job.normalizer, job.recipe.data, job.recipe.trainer.seed);
  feed.PretendDecoding(job.recipe.emulate.decode_ms * 1e-3);
  return feed;
}

LoaderThreads TrainingThreads(const Job& job, const Feed& feed, const ResidentSet* set) {
  const int64_t work = set ? kNumberWork : job.graph.input().size();
  return ChooseLoaderThreads(job.recipe.data.threads, work * job.shard_capacity, job.cores_per_rank,
                             job.threads_per_rank, feed.decodes());
}

Residence PlaceTraining(const Job& job, Engine& engine) {
  if (TrainingFeed(job).mixes() && engine.takes_bytes()) {
    return {nullptr, "samples travel as float32: two are mixed before"};
  }
  return PlaceSamples(*job.data.train, engine, job.recipe.engine.samples_mb,
                      int(job.trainers.size()));
}

LoaderRecord RecordOf(const LoaderNumbers& numbers) {
  return {.threads = numbers.threads,
          .requests = numbers.taken,
          .read = numbers.fetched.read,
          .decode = numbers.fetched.decode,
          .resize = numbers.fetched.resize,
          .cpu = numbers.fetched.cpu,
          .seconds = numbers.seconds,
          .ready_at_take = numbers.ready_at_take,
          .ready_s = numbers.ready_s};
}

int StepsInMemory(const Job& job, const ResidentSet* set) {
  const Feed feed = TrainingFeed(job);
  const bool ahead = job.strategy.inner->one_source || TrainingThreads(job, feed, set).first > 0;
  if (!job.strategy.in_step() || !ahead) return 1;
  return feed.decodes() ? 3 : 2;
}

// Its thread fetches by itself what lies in memory; what is decoded takes as many more as all the
// workers leave of the processors.
std::unique_ptr<Generator> MakeGenerator(const Job& job) {
  if (!job.strategy.inner->one_source) return nullptr;
  Feed feed = TrainingFeed(job);
  const IntOrWord& threads = job.recipe.data.threads;
  int helpers = 0;
  if (!threads.is_word() || feed.decodes()) {
    helpers = ChooseLoaderThreads(threads, 0, job.cores_per_rank * job.workers(),
                                  job.threads_per_rank * job.workers(), feed.decodes())
                  .first;
  }
  return std::make_unique<Generator>(std::move(feed), job.plan, job.shard_capacity,
                                     StepsInMemory(job), helpers);
}

}  // namespace trireme
