#pragma once
#include <optional>
#include <span>
#include <string>

namespace trireme {

// What one rank did in a stretch of time: seconds.
struct RankShare {
  double data = 0;
  double compute = 0;  // forward, backward and update
  double waited = 0;   // for communication
  double silent = 0;   // others heard nothing from this rank
};

enum class Cause { kData, kCompute, kLink };

struct Straggler {
  int rank = 0;
  double share = 0;    // of the time, that the others wait for it
  double seconds = 0;  // the same
  Cause cause = Cause::kCompute;

  std::string Text() const;
};

// Ranks that advance in step all need the time of the slowest. Who is late is who waits least while
// each of the others waits much longer; why is what it spends the difference on. A difference that
// neither its data nor its computing explains is nobody's fault: along a chain of ranks some hear
// the result earlier than others. A rank that the others did not hear for much of the time has a
// bad link. `seconds`: how long it was.
std::optional<Straggler> FindStraggler(std::span<const RankShare> ranks, double seconds);

// Names a rank once it has been late for long enough to be no accident: on a busy machine any rank
// is late now and then. One thread.
class StragglerWatch {
 public:
  // The next stretch of time; what it found if the same rank was late, for the same reason, in all
  // of the last kStretches and for kSeconds altogether, or for kLong altogether.
  std::optional<Straggler> Add(std::span<const RankShare> ranks, double seconds);

  static constexpr int kStretches = 3;
  static constexpr double kSeconds = 1, kLong = 5;

 private:
  std::optional<Straggler> last_;
  int stretches_ = 0;
  double seconds_ = 0;
};

}  // namespace trireme
