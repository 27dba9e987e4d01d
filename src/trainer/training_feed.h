#pragma once
#include <memory>

#include "data/loader.h"
#include "model/resident_set.h"
#include "record/metrics.h"
#include "trainer/generator.h"
#include "trainer/job.h"

namespace trireme {

// What the workers of a job are shown, and who fetches it.
Feed TrainingFeed(const Job& job);
// Of a worker; `set`: of the feed's samples on its device, null: there is none.
LoaderThreads TrainingThreads(const Job& job, const Feed& feed, const ResidentSet* set = nullptr);
// Where a worker's samples lie while it trains.
Residence PlaceTraining(const Job& job, Engine& engine);

LoaderRecord RecordOf(const LoaderNumbers& numbers);  // as a run keeps it

// Whose samples a worker holds: that of now, and those that its loader fetches ahead. What decoding
// takes varies, so one more lies ready there.
int StepsInMemory(const Job& job, const ResidentSet* set = nullptr);

// The source of samples for all workers of this process; null: each has its own.
std::unique_ptr<Generator> MakeGenerator(const Job& job);

}  // namespace trireme
