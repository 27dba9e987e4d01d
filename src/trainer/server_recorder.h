#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/state_image.h"
#include "base/stop_wish.h"
#include "strategy/server/server.h"
#include "trainer/recorder.h"
#include "trainer/start.h"

namespace trireme {

// Writes the run of a server: evaluates its centre, writes metrics, checkpoints, the summary. A
// thread of its own works on images of the server, taken between two updates; meanwhile the server
// serves on. Lines come before the checkpoint of the same step.
class ServerRecorder : public ServerKeeper {
 public:
  ServerRecorder(const Job& job, RunDirectory& directory, Progress& progress,
                 const StopWish& signals, const Start& start);
  ~ServerRecorder() override;

  void EpochEnded(const Server& server) override;
  bool Busy() override;
  void Look(const Server& server) override;
  bool Stop() override;
  int signal() const override {
    return signals_.stop() ? signals_.received() : other_signal_.load();
  }
  void Signalled(int signal) override { other_signal_ = signal; }

  Ending Finish(const Server& server);  // after Server::Run; throws what the thread threw
  const Summary& summary() const { return recorder_.summary(); }

 private:
  enum class What { kEpoch, kSnapshot, kEnd };
  // A server between two updates.
  struct Image {
    What what;
    bool save = false;  // as a checkpoint, whatever else says so
    std::vector<float> state;
    StateImage saved;
    Server::Progress progress;
    std::vector<ClientStats> clients;
    double seconds = 0;  // since this life began
  };

  void Take(const Server& server, What what);
  void Work();
  void Handle(Image& image);
  bool ReturnToBest(Image& image);
  void Summarize(const Image& image, bool returned);
  EpochRecord MeasureEpoch(const Image& image, double epoch);
  void EndEpoch(const Image& image);
  void Evaluate(const Image& image);
  std::string FaultOf(const Image& image) const;
  void EndWith(Ending ending);
  Ending ending();
  void Save(const Image& image);
  int64_t StepOf(const Server::Progress& progress) const;
  void Rethrow();

  const Job& job_;
  Progress& progress_;
  const StopWish& signals_;
  Recorder recorder_;
  const Stopwatch clock_;
  double next_snapshot_s_;
  int64_t taken_step_ = -1;  // of the last snapshot
  std::mutex shown_;         // guards progress_ and recorder_'s use of it

  // The thread's.
  TrainState at_;
  const double seconds_before_;
  const std::vector<float> frozen_;  // behind what the server has, in a model
  uint64_t sent_before_ = 0, received_before_ = 0;
  std::optional<Findings> findings_;
  int64_t evaluated_step_ = -1, saved_step_ = -1;
  Backend backend_;
  std::unique_ptr<Queue> queue_;
  Buffer state_;
  std::optional<Examiner> examiner_;

  std::atomic<bool> enough_ = false;
  std::atomic<int> other_signal_ = 0;  // that another server got
  std::optional<Ending> early_;        // by an evaluation; guarded by mutex_
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Image> images_;  // guarded by mutex_; the first is worked on
  bool closing_ = false;      // guarded by mutex_
  std::exception_ptr error_;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace trireme
