// What a summary says of the classes: the same for any ranks, and what `eval` and the page say.
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

constexpr const char* kOfClasses[] = {"macro_precision",
                                      "macro_recall",
                                      "macro_f1",
                                      "macro_auc",
                                      "auc_error",
                                      "confusion",
                                      "per_class_recall",
                                      "per_class_precision",
                                      "per_class_f1",
                                      "per_class_auc",
                                      "roc"};

class EvaluationTest : public WholeTest {
 protected:
  // Few steps: classes are mixed up. 7 chunks of test samples.
  const Words kTrain = {"train", "--model", "mlp:64-8-5",       "--data", "synthetic:8x8x1:5:3300",
                        "--lr",  "0.02",    "--steps",          "12",     "--batch",
                        "24",    "--set",   "trainer.shards=6", "--quiet"};

  void ExpectSame(const Json& a, const Json& b, const std::string& who) {
    for (const char* key : kOfClasses) {
      EXPECT_EQ(a.At(key).Text(), b.At(key).Text()) << who << ", " << key;
    }
  }
};

TEST_F(EvaluationTest, RanksChangeNoBit) {
  const Words train = kTrain + Words{"--deterministic"};
  Succeed(train + Words{"--out", "one"});
  const Json one = Summary("one");
  const double auc = one.At("macro_auc").AsDouble();
  EXPECT_GT(auc, 0.5);
  EXPECT_LT(auc, 1);
  EXPECT_GT(one.At("roc").At("curves").Items().at(0).At("true_positive_rate").Items().size(), 5u);
  for (const std::string transport : {"threads", "shm"}) {
    for (const std::string ranks : {"2", "3"}) {
      const std::string run = transport + ranks;
      Succeed(train + Words{"--ranks", ranks, "--transport", transport, "--out", run});
      ExpectSame(Summary(run), one, run);
    }
  }
}

// Also where servers, or a worker alone, evaluate.
TEST_F(EvaluationTest, EvalSaysWhatTheSummarySays) {
  for (const std::string strategy : {"allreduce", "sync-ps", "easgd", "hogwild", "local-sgd"}) {
    Succeed(kTrain + Words{"--strategy", strategy, "--ranks", "2", "--out", strategy});
    const Json said = ParseJson(Succeed({"eval", strategy, "--json"}).out, "eval");
    ExpectSame(Summary(strategy), said, strategy);
  }
  const std::string text = Succeed({"eval", "allreduce"}).out;
  for (const char* word : {"recall", "precision", "F1", "AUC", "mean"}) {
    EXPECT_NE(text.find(word), text.npos) << text;
  }
  Succeed({"report", "allreduce", "--out", "page.html"});
  EXPECT_NE(Read("page.html").find("ROC curves"), std::string::npos);
}

}  // namespace
}  // namespace trireme::whole
