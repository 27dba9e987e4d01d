#include "optimizer/options.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/sections.h"

namespace trireme {
namespace {

TEST(OptimizerOptions, EveryKeyReachesItsMember) {
  OptimizerOptions o;
  Sections sections;
  sections.Add("optimizer", o);
  for (const char* text : {"name=adamw",         "lr=0.5",
                           "momentum=0.25",      "nesterov=true",
                           "weight_decay=0.125", "beta1=0.75",
                           "beta2=0.875",        "epsilon=0.0625",
                           "history=7",          "line_decrease=0.25",
                           "line_curvature=0.5", "line_evaluations=9",
                           "portion=11",         "backups=false",
                           "schedule=step",      "decay_epochs=[2, 4.5]",
                           "decay_every=3",      "decay_factor=0.625",
                           "lr_min=0.03125",     "warmup_epochs=1.5",
                           "scale_lr=true",      "scale_batch=64"}) {
    sections.SetAssignment(std::string("optimizer.") + text);
  }
  EXPECT_EQ(o.name, "adamw");
  EXPECT_EQ(o.lr, 0.5);
  EXPECT_EQ(o.momentum, 0.25);
  EXPECT_TRUE(o.nesterov);
  EXPECT_EQ(o.weight_decay, 0.125);
  EXPECT_EQ(o.beta1, 0.75);
  EXPECT_EQ(o.beta2, 0.875);
  EXPECT_EQ(o.epsilon, 0.0625);
  EXPECT_EQ(o.history, 7);
  EXPECT_EQ(o.line_decrease, 0.25);
  EXPECT_EQ(o.line_curvature, 0.5);
  EXPECT_EQ(o.line_evaluations, 9);
  EXPECT_EQ(o.portion, 11);
  EXPECT_FALSE(o.backups);
  EXPECT_EQ(o.schedule, "step");
  EXPECT_EQ(o.decay_epochs, (std::vector<double>{2, 4.5}));
  EXPECT_EQ(o.decay_every, 3);
  EXPECT_EQ(o.decay_factor, 0.625);
  EXPECT_EQ(o.lr_min, 0.03125);
  EXPECT_EQ(o.warmup_epochs, 1.5);
  EXPECT_TRUE(o.scale_lr);
  EXPECT_EQ(o.scale_batch, 64);
}

TEST(OptimizerOptions, RefusesWhatWouldDivideByNothing) {
  OptimizerOptions o;
  Sections sections;
  sections.Add("optimizer", o);
  for (const char* text : {"name=sdg", "lr=-1", "momentum=1", "beta1=1", "beta2=1", "epsilon=0",
                           "schedule=linear", "scale_batch=0", "decay_factor=0"}) {
    EXPECT_THROW(sections.SetAssignment(std::string("optimizer.") + text), UsageError) << text;
  }
}

}  // namespace
}  // namespace trireme
