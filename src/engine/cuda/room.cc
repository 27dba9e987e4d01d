#include "engine/cuda/room.h"

#include "base/error.h"
#include "base/text.h"
#include "engine/cuda/call_list.h"

namespace trireme::cuda {
namespace {

// If it were compiled for so many samples.
Shares SharesOf(const Program& program, Context& context, int samples) {
  const Needs needs = NeedsOf(program, context, samples);
  const size_t sample =
      size_t(program.graph.input().size()) * sizeof(float) + sizeof(int32_t) + sizeof(LabelMix);
  return {.activations = size_t(double(program.activation_bytes) / program.capacity * samples),
          .samples = size_t(SlotsOf(program.mode)) * size_t(samples) * sample,
          .copies = needs.copy_bytes,
          .scratch = needs.scratch_bytes,
          .aside_scratch = needs.aside_scratch_bytes};
}

// About: values are aligned, and what is not of a sample counts as if it were.
int SamplesThatFit(const Program& program, Context& context, size_t room) {
  int fit = 0, too_many = program.capacity;
  while (too_many - fit > 1) {
    const int tried = fit + (too_many - fit) / 2;
    const bool fits = double(SharesOf(program, context, tried).total()) < 0.99 * double(room);
    (fits ? fit : too_many) = tried;
  }
  return fit;
}

}  // namespace

Shares SharesOf(const Program& program, Context& context) {
  return SharesOf(program, context, program.capacity);
}

Shares RequireRoom(const Program& program, Context& context) {
  const CudaDevice& card = context.queue.card();
  const size_t room = card.free_bytes();
  const Shares shares = SharesOf(program, context);
  if (shares.total() <= room) return shares;
  const int fit = SamplesThatFit(program, context, room);
  const auto text = [](size_t bytes) { return FormatBytes(double(bytes)); };
  throw Error(
      "{} ({}) has room for {}, and {} of {} samples at once needs {}: activations {}, samples {}, "
      "copies of weights and gradients {}, scratch memory of the kernels {}; {} "
      "(a smaller trainer.batch or a larger trainer.accumulate needs less)",
      card.name(), card.model(), text(room),
      program.mode == Mode::kTrain ? "training" : "evaluation", program.capacity,
      text(shares.total()), text(shares.activations), text(shares.samples), text(shares.copies),
      text(shares.scratch + shares.aside_scratch),
      fit > 0 ? fmt::format("about {} samples fit", fit) : "not even one sample fits");
}

}  // namespace trireme::cuda
