#include "optimizer/options.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "optimizer/rules.h"

namespace trireme {

void Describe(OptionTable<OptimizerOptions>& t) {
  using enum Binds;
  using O = OptimizerOptions;
  std::vector<std::string> names;
  std::string help = "update rule:";
  std::string rates;
  for (const RuleDef& rule : AllRules()) {
    help += (names.empty() ? " " : "; ") + std::string(rule.name) + ": " + rule.help;
    rates += fmt::format("{}{} {:g}", names.empty() ? "" : ", ", rule.name, rule.rate);
    names.push_back(rule.name);
  }
  t.Add("name", &O::name, OneOf(names), kRun, help);
  t.Add("lr", &O::lr, AtLeast(0), kJob,
        fmt::format("learning rate; without a recipe by the optimizer: {} (sgd at its default "
                    "momentum); a tenth with trainer.init",
                    rates));
  t.Add("momentum", &O::momentum, AtLeast(0) && Below(1), kJob, "share of the velocity kept (sgd)");
  t.Add("nesterov", &O::nesterov, Any(), kJob, "look ahead along the velocity (sgd)");
  t.Add("skip_zeros", &O::skip_zeros, Any(), kJob,
        "sgd without momentum and weight decay: 64 bytes of weights whose gradients are all zero "
        "are not touched; the result is the same, hogwild's workers disturb each other less");
  t.Add("weight_decay", &O::weight_decay, AtLeast(0), kJob,
        "pulls weights to zero; biases and norms are spared");
  t.Add("beta1", &O::beta1, AtLeast(0) && Below(1), kJob, "memory of the mean (adam, adamw)");
  t.Add("beta2", &O::beta2, AtLeast(0) && Below(1), kJob, "memory of the squares (adam, adamw)");
  t.Add("epsilon", &O::epsilon, AtLeast(1e-30), kJob,
        "added to the root of the squares (adam, adamw, adagrad)");
  t.Add("schedule", &O::schedule, OneOf({"constant", "step", "cosine"}), kJob,
        "how the learning rate goes on after the warm-up; without a recipe: cosine");
  t.Add("decay_epochs", &O::decay_epochs, AtLeast(0), kJob,
        "epochs at which the rate falls (step)");
  t.Add("decay_every", &O::decay_every, AtLeast(0), kJob,
        "the rate falls every so many epochs (step); 0: at decay_epochs");
  t.Add("decay_factor", &O::decay_factor, Above(0) && AtMost(1), kJob,
        "what the rate is multiplied by when it falls (step)");
  t.Add("lr_min", &O::lr_min, AtLeast(0), kJob, "learning rate at the end (cosine)");
  t.Add("warmup_epochs", &O::warmup_epochs, AtLeast(0), kJob,
        "epochs in which the rate grows linearly to its full height; may be a fraction; without a "
        "recipe, for resnets: a tenth of the run, at most one epoch");
  t.Add("scale_lr", &O::scale_lr, Any(), kJob, "multiply lr by global batch / scale_batch");
  t.Add("scale_batch", &O::scale_batch, AtLeast(1), kJob,
        "the batch for which lr is meant (scale_lr)");
}

}  // namespace trireme
