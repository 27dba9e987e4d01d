#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "record/progress_text.h"

namespace trireme {

enum class ProgressStyle {
  kQuiet,
  kPlain,     // a line per epoch, and one every few seconds
  kTerminal,  // one line that is redrawn, and what stays scrolls above it
  kJson,      // one JSON object per event, on standard output
  kHandedOn,  // no text: records of epochs and remarks, for a program that shows them itself
};

ProgressStyle ChooseProgressStyle(bool quiet, bool json);  // otherwise: is stderr a terminal?

// Where the text goes and what time it is; tests bring their own.
struct ProgressOutput {
  // Stays; what is to catch the eye is a part of the text.
  std::function<void(std::string_view text, const Highlight& highlight)> line;
  std::function<void(std::string_view)> live;  // replaces the one before; empty takes it away
  std::function<int()> width;
  std::function<double()> seconds;  // of a clock that never goes back
  // kHandedOn: every epoch, and how many there will be.
  std::function<void(const EpochRecord&, int64_t epochs)> epoch = {};
};
// Lines and the live line go where the log goes, so that neither cuts the other; events of kJson go
// to `event`.
ProgressOutput StandardProgressOutput(ProgressStyle style, LogOutput& log,
                                      std::function<void(std::string_view)> event);

// Shows a training while it runs. One thread.
class Progress {
 public:
  Progress(ProgressStyle style, ProgressOutput output);
  Progress(
      ProgressStyle style, LogOutput& log,
      std::function<void(std::string_view)> event = [](std::string_view) {})
      : Progress(style, StandardProgressOutput(style, log, std::move(event))) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // After each step, however short: a comparison unless the clock must be looked at, and
  // `describe()` (giving a StepProgress) is called only when something is shown.
  template <class Describe>
  void Step(int64_t step, Describe&& describe) {
    if (step >= look_at_step_ && IsDue(step)) Show(describe());
  }

  void Epoch(const EpochRecord& record, int64_t epochs);
  void End(const Summary& summary);     // nothing of the live line remains
  void Hide() { output_.live(""); }     // the live line, until the next step
  void Message(std::string_view text);  // a remark: a line of its own

 private:
  bool IsDue(int64_t step);
  void Show(const StepProgress& progress);
  Pace Measure(const StepProgress& progress);

  ProgressStyle style_;
  ProgressOutput output_;
  struct Mark {
    double seconds = 0;
    int64_t step = 0, samples = 0;
  };
  int64_t look_at_step_ = 0;                   // before it, IsDue would say no
  double now_ = 0;                             // when the clock was looked at
  std::optional<Mark> looked_, first_, last_;  // steps when it was, steps that were described
  double next_show_;
  double last_epoch_line_ = -std::numeric_limits<double>::infinity();
  std::optional<double> rate_;  // samples per second, of the last few seconds
};

}  // namespace trireme
