#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cli/args.h"

namespace trireme {

inline constexpr Flag kDeviceFlag = {"--device", "NAME",
                                     "the engine that computes, or auto (`trireme list engines`)",
                                     "trainer.device"};

// The common keys of a recipe as flags, for every command that trains.
inline constexpr Flag kRecipeFlags[] = {
    {"--model", "NAME", "the network: mlp:4-30-20-3, cnn, resnet18, ... (`trireme list models`)",
     "model.name"},
    {"--data", "SOURCE", "the samples: iris, csv:FILE, mnist:DIR, ... (`trireme list data`)",
     "data.source"},
    {"--epochs", "N", "passes over the training samples", "trainer.epochs"},
    {"--steps", "N", "steps of the whole run, instead of epochs", "trainer.steps"},
    {"--batch", "N", "samples per step over all workers, or full", "trainer.batch"},
    {"--lr", "X", "learning rate", "optimizer.lr"},
    {"--optimizer", "NAME", "sgd, adam, adamw, adagrad, lars, lamb, lbfgs", "optimizer.name"},
    {"--seed", "N", "seed of weights, order, augmentation and split", "trainer.seed"},
    {"--threads", "N", "compute threads, or auto", "trainer.threads"},
    {"--precision", "NAME",
     "f32, tf32 (cards), bf16, fp16 (cards), or bf16-or-f32: bf16 where this machine has it",
     "trainer.precision"},
    kDeviceFlag,
    {"--ranks", "N", "replicas that train together", "transport.ranks"},
    {"--transport", "NAME", "how ranks talk (`trireme list transports`)", "transport.name"},
    {"--strategy", "NAME", "how ranks agree (`trireme list strategies`)", "strategy.name"},
    {"--shuffle", "on|off", "visit the samples in random order", "data.shuffle"},
    {"--deterministic", "", "the same bits for any number of workers with the same trainer.shards",
     "trainer.deterministic"},
    kSetFlag,
};

template <size_t N, size_t M>
constexpr std::array<Flag, N + M> JoinFlags(const Flag (&first)[N], const Flag (&second)[M]) {
  std::array<Flag, N + M> all;
  for (size_t i = 0; i < N; ++i) all[i] = first[i];
  for (size_t i = 0; i < M; ++i) all[N + i] = second[i];
  return all;
}

// The recipe that a command follows: the one in its place RECIPE. Without one it is iris, but none
// where the command line names data or a model: what it leaves open is then chosen for them
// (trainer/defaults.h). `varied`: keys that it gives otherwise than by flags and --set.
std::optional<std::string> FollowedRecipe(const Args& args,
                                          const std::vector<std::string>& varied = {});

}  // namespace trireme
