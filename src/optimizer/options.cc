#include "optimizer/options.h"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "flat/update_scale.h"
#include "optimizer/rules.h"
#include "optimizer/schedule.h"

namespace trireme {

void Describe(OptionTable<OptimizerOptions>& t) {
  using enum Binds;
  using O = OptimizerOptions;
  std::vector<std::string> names;
  std::string help = "update rule:";
  std::string rates;
  for (const RuleDef& rule : AllRules()) {
    help += (names.empty() ? " " : "; ") + std::string(rule.name) + ": " + rule.help;
    if (!rule.whole) {
      rates += fmt::format("{}{} {:g}", rates.empty() ? "" : ", ", rule.name, rule.rate);
    }
    names.push_back(rule.name);
  }
  t.Add("name", &O::name, OneOf(names), kRun, help + "; without a recipe, for tables: adamw");
  t.Add("lr", &O::lr, AtLeast(0), kJob,
        fmt::format(
            "learning rate; without a recipe it depends on the optimizer: {} (sgd at its "
            "default momentum), for tables with adamw 0.003, with trainer.init a tenth of that",
            rates));
  t.Add("momentum", &O::momentum, AtLeast(0) && Below(1), kJob,
        "share of the velocity kept (sgd, lars)");
  t.Add("nesterov", &O::nesterov, Any(), kJob, "look ahead along the velocity (sgd)");
  t.Add(
      "skip_zeros", &O::skip_zeros, Any(), kJob,
      "sgd without momentum and weight decay: leaves 64 bytes of weights untouched if all their "
      "gradients are zero; the result is the same, and hogwild's workers disturb each other less");
  t.Add("weight_decay", &O::weight_decay, AtLeast(0), kJob,
        "pulls weights towards zero, except biases and norms; without a recipe, for tables with "
        "adamw: by the number of rows");
  t.Add("beta1", &O::beta1, AtLeast(0) && Below(1), kJob,
        "decay rate of the mean of the gradients (adam, adamw, lamb)");
  t.Add("beta2", &O::beta2, AtLeast(0) && Below(1), kJob,
        "decay rate of the mean of their squares (adam, adamw, lamb)");
  t.Add("epsilon", &O::epsilon, AtLeast(1e-30), kJob,
        "added to the root of the squares (adam, adamw, lamb, adagrad)");
  t.Add("trust", &O::trust, Above(0), kJob,
        "how far a step may move a tensor at a rate of 1, as a share of its own length (lars)");
  t.Add("history", &O::history, Between(1, 1000), kRun,
        "steps whose pairs (move, change of the gradient) say how the loss curves (lbfgs)");
  t.Add("line_decrease", &O::line_decrease, Above(0) && Below(0.5), kJob,
        "line search: share of the decrease that the slope promises, at least (lbfgs)");
  t.Add("line_curvature", &O::line_curvature, Above(0) && Below(1), kJob,
        "line search: share of the slope that may remain (lbfgs)");
  t.Add("line_evaluations", &O::line_evaluations, Between(1, 1000), kJob,
        "line search: gradients of all samples that a step may take (lbfgs)");
  t.Add("portion", &O::portion, AtLeast(0), kRun,
        "samples whose gradient is computed at once, the same in every epoch, with their own "
        "batch-norm statistics; 0: a 128th of them, from 16 to 256 (lbfgs)");
  t.Add("backups", &O::backups, Any(), kJob,
        "when no portion is left, idle workers compute the ones that others have not finished, and "
        "the first answer counts (lbfgs)");
  t.Add(
      "schedule", &O::schedule, OneOf(ScheduleNames()), kJob,
      "how the learning rate changes after the warm-up; without a recipe: cosine; one-cycle: from "
      "lr / 25 up to lr, over the warm-up or 0.3 of the run, and down to lr_min; plateau: falls by "
      "decay_factor where evaluations get no better; rising: by the same factor in every step, "
      "from lr_min to lr (a range test)");
  t.Add("decay_epochs", &O::decay_epochs, AtLeast(0), kJob,
        "epochs at which the rate falls (step)");
  t.Add("decay_every", &O::decay_every, AtLeast(0), kJob,
        "epochs between falls of the rate (step); 0: it falls at decay_epochs");
  t.Add("decay_factor", &O::decay_factor, Above(0) && AtMost(1), kJob,
        "factor that the rate is multiplied by when it falls (step, plateau)");
  t.Add(
      "decay_patience", &O::decay_patience, AtLeast(0), kJob,
      "evaluations without a better accuracy, or RMSE of numbers (as for trainer.patience), after "
      "which the rate falls (plateau); 0: 5");
  t.Add("lr_min", &O::lr_min, AtLeast(0), kJob,
        "learning rate at the end (cosine, one-cycle), at least (plateau) or in the first step "
        "(rising)");
  t.Add("warmup_epochs", &O::warmup_epochs, AtLeast(0), kJob,
        "epochs over which the rate rises linearly to its full value; may be a fraction; without a "
        "recipe, for resnets: a tenth of the run, at most one epoch; for tables with adamw: a "
        "twentieth of the run");
  t.Add("scale_lr", &O::scale_lr, Any(), kJob, "multiply lr by global batch / scale_batch");
  t.Add("scale_batch", &O::scale_batch, AtLeast(1), kJob,
        "the batch that lr is meant for (scale_lr)");
  t.Add(
      "rates", &O::rates, Any(), kJob,
      "factors of the rate, \"NAME=FACTOR NAME=FACTOR\": of the layer NAME, or of all whose names "
      "begin with NAME and a dot; the longest name that fits a layer counts");
  t.Add("loss_scale", &O::loss_scale, Between(LossScaling::kLeast, LossScaling::kMost), kJob,
        "trainer.precision = fp16: factor of the loss at the beginning, so that small gradients do "
        "not vanish; the update takes it out again");
  t.Add("loss_scale_growth", &O::loss_scale_growth, Between(1, 65536), kJob,
        "factor by which the loss scale grows after loss_scale_steps steps without an overflow; 1: "
        "never (fp16)");
  t.Add("loss_scale_backoff", &O::loss_scale_backoff, Above(0) && Below(1), kJob,
        "factor by which it falls after an overflow, whose step is skipped (fp16)");
  t.Add("loss_scale_steps", &O::loss_scale_steps, Between(1, 1 << 24), kJob,
        "steps without an overflow until the loss scale grows (fp16)");
}

}  // namespace trireme
