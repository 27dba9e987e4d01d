#include "strategy/exchange/merge_gradient.h"

#include "flat/arithmetic.h"

namespace trireme {

void MergeGradient::Begin(Replica& r) {
  if (pace_.push != 1) sum_ = Buffer(r.device, r.state.size);
  if (fetches()) Take(r, centre_.Fetch(r.state.size));
  if (shared_) shared_->Meet();  // nobody steps before
}

void MergeGradient::BeforeStep(Replica& r, int) {
  TakeNews(r);
  if (shared_ && summed_ == 0) version_ = shared_->version();
}

void MergeGradient::TakeNews(Replica& r) {
  if (!fetches()) return;
  if (pace_.clock >= 0) {
    // A lease that has become void may be of a step that the server is no longer near to.
    while (version_ < r.work.step - pace_.clock && !centre_.holds_void()) {
      Take(r, centre_.Fetch(r.state.size));
    }
    return;
  }
  if (pace_.waits) {
    if (summed_ == 0) Take(r, centre_.Fetch(r.state.size, true));
    return;
  }
  if (steps_ < pace_.fetch) return;
  if (shared_) {  // nobody waits: the others move the weights meanwhile
    if (const auto centre = centre_.Prefetched(r.state.size)) Take(r, *centre);
    return;
  }
  if (pace_.asks) return Take(r, centre_.Fetch(r.state.size));
  // An offer may have waited here since before the centre was taken anew.
  const auto news = centre_.News(r.state.size);
  if (news && news->version > version_) Take(r, *news);
}

void MergeGradient::AskIfDue() {
  if (asks() && steps_ >= pace_.fetch) centre_.Prefetch();
}

void MergeGradient::AfterStep(Replica& r, bool meets) {
  ++steps_;
  if (!meets) AskIfDue();  // else behind the push
  if (summed_++ == 0) from_ = version_;
  if (pace_.push == 1) return;
  const size_t weights = r.layout.weights, statistics = r.state.size - weights;
  const Slice summand = r.summands[0], sum = sum_;
  flat::Add(r.queue, summand.Sub(0, weights), sum.Sub(0, weights));
  if (statistics == 0) return;
  const float part = 1.0f / float(summed_);  // of statistics the mean is wanted
  flat::Blend(r.queue, part, summand.Sub(weights, statistics), 1 - part,
              sum.Sub(weights, statistics));
}

void MergeGradient::Meet(Replica& r, PushHead head, std::span<const int64_t> leases) {
  head.version = from_;
  const Slice from = pace_.push == 1 ? r.summands[0].Sub(0, r.state.size) : Slice(sum_);
  centre_.Push(r.queue, from, head, leases);
  if (pace_.push != 1) flat::Fill(r.queue, 0, from);
  const bool early = summed_ < pace_.push;  // the epoch, or the run, has no more work
  summed_ = 0;
  if (early && asks() && !shared_) {
    // Else fetches would fall between pushes from now on, and weights that were asked for before
    // lack this one.
    return Take(r, centre_.FetchNow(r.state.size));
  }
  AskIfDue();
}

void MergeGradient::Reload(Replica& r) {
  Take(r, centre_.Fetch(r.state.size));
  summed_ = 0;
  if (pace_.push != 1) flat::Fill(r.queue, 0, sum_);
  r.updater.Reset(r.queue);
}

void MergeGradient::Take(Replica& r, const Centre::Snapshot& centre) {
  if (shared_) {
    shared_->Put(r, centre);
  } else {
    centre_.Put(r.queue, centre, r.state);
    version_ = centre.version;
  }
  moved_ = true;
  steps_ = 0;
}

}  // namespace trireme
