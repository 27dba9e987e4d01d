#include "transport/mpi/links.h"

#include <algorithm>

#include "base/assert.h"
#include "base/start_thread.h"
#include "transport/mpi/patience.h"

namespace trireme {
namespace {

constexpr std::chrono::microseconds kNap(50);  // between two looks, while there is something to see

}  // namespace

Link& MpiLinks::To(int rank) {
  TRIREME_ASSERT(rank >= 0 && rank < group_.size() && rank != group_.rank());
  MpiTurn turn(group_.turns(), MpiTurn::kCaller);
  auto& link = links_[rank];
  if (!link) {
    link = std::make_unique<MpiLink>(group_, library_, rank, timeout_s_, piece_bytes_);
    if (const auto loss = group_.Loss()) link->Abort(*loss);
  }
  if (!thread_.joinable()) {
    thread_ = StartThread("the thread of the MPI links",
                          [this](const std::stop_token& stop) { Look(stop); });
  }
  return *link;
}

void MpiLinks::Look(const std::stop_token& stop) {
  for (Patience patience(kNap); !stop.stop_requested(); patience.Pause()) {
    MpiTurn turn(group_.turns(), MpiTurn::kPoller);
    group_.Pass();
    bool moved = false;
    for (auto& [rank, link] : links_) moved |= link->Move();
    if (moved) patience.Restart();
    if (const auto loss = group_.Loss()) {
      for (auto& [rank, link] : links_) link->Abort(*loss);
      return;
    }
  }
}

void MpiLinks::End() noexcept {
  {
    MpiTurn turn(group_.turns(), MpiTurn::kCaller);
    for (auto& [rank, link] : links_) link->End();
  }
  for (Patience patience;; patience.Pause()) {
    MpiTurn turn(group_.turns(), MpiTurn::kPoller);
    const bool over = std::all_of(links_.begin(), links_.end(),
                                  [](const auto& link) { return link.second->ended(); });
    if (over || group_.Loss()) break;
  }
  thread_.request_stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace trireme
