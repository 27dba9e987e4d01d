#include "trainer/muster.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

// What the engine of a client that joins says of how it computes convolutions.
std::string ChoiceOfClient(const std::string& winograd) {
  Recipe recipe;
  recipe.model.name = "cnn";
  recipe.data.source = "synthetic:12x12x1:3:40";
  recipe.strategy.name = "easgd";
  recipe.transport.ranks = 2;
  recipe.engine.winograd = winograd;
  const Notice notice = ReadNotice(NoticeOf(PrepareJob(recipe, BackendOf(recipe))));
  const Job job = PrepareClient(
      notice, [](Sections& sections) { sections.SetAssignment("trainer.threads=1"); });
  EXPECT_EQ(job.threads_per_rank, 1);
  Graph graph = job.graph;
  return job.make_backend(1).engine->Choose(graph);
}

TEST(Muster, AClientComputesAsTheServersRecipeSays) {
  for (const std::string how : {"off", "f2", "auto"}) {
    EXPECT_NE(ChoiceOfClient(how).find("winograd (" + how + ")"), std::string::npos) << how;
  }
}

}  // namespace
}  // namespace trireme
