// What the program says of cards, with plugins that were made for it: no card is needed.
#include <algorithm>
#include <cstdlib>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class CardsTest : public WholeTest {
 protected:
  CardsTest() { SetPlugin(TRIREME_MADE_PLUGIN_FILE); }
  ~CardsTest() override {
    unsetenv("TRIREME_CUDA_PLUGIN");
    unsetenv("TRIREME_MADE_PLUGIN");
  }
  static void SetPlugin(const std::string& file) { setenv("TRIREME_CUDA_PLUGIN", file.c_str(), 1); }
  static void SetWrong(const char* wrong) { setenv("TRIREME_MADE_PLUGIN", wrong, 1); }

  // Training ends before it has begun.
  void RefuseToTrain(const Words& words, int code, std::initializer_list<std::string> parts) {
    Refuse(Words{"train", "--steps", "2", "--out", "a"} + words, code, parts);
    EXPECT_FALSE(Exists(At("a")));
  }
  static void ExpectIn(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), text.npos) << text;
  }
};

TEST_F(CardsTest, WhatIsMissingIsSaidInOneLine) {
  SetWrong("empty");
  RefuseToTrain({"--device", "cuda"}, 1, {"trainer.device = \"cuda\": there is no card; plug"});
  SetWrong("id");
  RefuseToTrain({"--device", "cuda"}, 1, {"was not built together with this program; build"});
  SetPlugin("none.so");
  RefuseToTrain({"--device", "cuda"}, 1, {"cannot load the CUDA plugin none.so"});
  RefuseToTrain({"--device", "cuda", "--ranks", "2"}, 1, {"cannot load the CUDA plugin none.so"});
}

TEST_F(CardsTest, ACardIsChosenByItsNumber) {
  RefuseToTrain({"--device", "cuda:2"}, 1, {"this machine has 2 cards; choose cuda:0 to cuda:1"});
  RefuseToTrain({"--device", "cuda:1"}, 1, {"Made 2 is too old; buy another"});
  RefuseToTrain({"--device", "cuda:x"}, 2, {"cuda:x"});
  RefuseToTrain({"--device", "cpu", "--precision", "tf32"}, 2, {"processors have no tf32"});
}

// Whether there is a card or not.
TEST_F(CardsTest, StrategiesThatNeedTheProcessorsMemoryAreRefused) {
  for (const std::string plugin : {TRIREME_MADE_PLUGIN_FILE, "none.so"}) {
    SetPlugin(plugin);
    for (const std::string strategy : {"bsp", "hogwild", "dogwild"}) {
      RefuseToTrain({"--device", "cuda", "--ranks", "3", "--strategy", strategy}, 2,
                    {"strategy " + strategy, "--device cpu"});
    }
  }
}

TEST_F(CardsTest, ARunOfACardIsUsedWithoutOne) {
  Succeed({"train", "--steps", "20", "--device", "cpu", "--out", "a"});
  const Json before = ParseJson(Succeed({"eval", "a", "--json"}).out, "eval");
  std::string config = Read("a/config.toml");
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(config.find(from), config.npos);
    config.replace(config.find(from), from.size(), to);
  };
  replace("device = \"cpu\"", "device = \"cuda:1\"");
  replace("precision = \"f32\"", "precision = \"tf32\"");
  Write("a/config.toml", config);

  SetPlugin("none.so");
  const auto without = Succeed({"eval", "a", "--json"});
  ExpectIn(without.err, "the run's device cuda:1 is not here (cannot load the CUDA plugin none.so");
  ExpectIn(without.err, "cpu computes instead");
  EXPECT_EQ(ParseJson(without.out, "eval").Text(), before.Text());
  EXPECT_EQ(Succeed({"eval", "a", "--device", "ref"}).err, "");  // the user has chosen
  Refuse({"eval", "a", "--device", "cuda"}, 1, {"cannot load the CUDA plugin none.so"});
  Write("flowers.csv", "5.1,3.5,1.4,0.2\n");
  ExpectIn(Succeed({"predict", "a", "flowers.csv"}).out, "Iris-setosa");

  // To train on is another matter: nobody wants to wait for a processor unknowingly.
  Refuse({"train", "--resume", "a", "--steps", "30"}, 1, {"cannot load the CUDA plugin none.so"});
  Succeed({"train", "--resume", "a", "--steps", "30", "--device", "cpu", "--precision", "f32"});
}

TEST_F(CardsTest, AutoSaysWhyItTakesNoCard) {
  SetWrong("empty");
  Words words = {"train", "--steps", "2", "--device", "auto", "--out"};
  ExpectIn(Succeed(words + Words{"a"}).err, "auto: cpu computes, because there is no card; plug");
  ExpectIn(Read("a/config.toml"), "device = \"cpu\"");
  EXPECT_EQ(Succeed(words + Words{"b", "--quiet"}).err, "");
  SetWrong("");
  const Words hogwild = {"--ranks", "2", "--strategy", "hogwild"};
  ExpectIn(Succeed(words + Words{"c"} + hogwild).err,
           "auto: cpu computes, because strategy hogwild");
}

// The plugin's card exists on paper only: who takes it fails.
TEST_F(CardsTest, ANewRunTakesACardUnlessSomethingSaysOtherwise) {
  const Words words = {"train", "--steps", "2", "--threads", "1", "--out"};
  const auto takes_card = [&](const std::string& run, const Words& more) {
    const Outcome outcome = Run(words + Words{run} + more);
    EXPECT_EQ(outcome.exit_code, 1) << run;
    ExpectIn(outcome.err, "card 0 with 0 MB exists on paper only");
  };
  const auto takes_none = [&](const std::string& run, const Words& more) {
    Succeed(words + Words{run} + more);
    EXPECT_EQ(Summary(run).At("device").AsString(), "cpu") << run;
  };
  takes_card("new", {});
  takes_none("same-bits", {"--deterministic"});
  takes_card("same-bits-here", {"--deterministic", "--device", "auto"});
  takes_none("shared", {"--ranks", "2", "--strategy", "hogwild"});
  Write("named.toml", "[trainer]\ndevice = \"cpu\"\n");
  Succeed({"train", "named.toml", "--steps", "2", "--out", "named"});
  Succeed({"train", "--resume", "named", "--steps", "4"});
  EXPECT_EQ(Summary("named").At("device").AsString(), "cpu");
}

TEST_F(CardsTest, AMachineWithoutCardsIsNotToldSo) {
  const Words words = {"train", "--steps", "2", "--threads", "1", "--out"};
  const auto lines = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  const auto wanted = lines(Succeed(words + Words{"cpu", "--device", "cpu"}).err);
  SetWrong("empty");
  EXPECT_EQ(lines(Succeed(words + Words{"a"}).err), wanted);
  Succeed({"train", "--folds", "2", "--steps", "2", "--out", "folds"});
  // What is broken is another matter.
  SetWrong("throw");
  ExpectIn(Succeed(words + Words{"b"}).err, "auto: cpu computes, because there is no library of");
}

TEST_F(CardsTest, AutoDoesNotBlameTheCardForWhatNoDeviceCanDo) {
  RefuseToTrain({"--device", "auto", "--strategy", "easgd", "--ranks", "1"}, 2,
                {"at least 2 ranks"});
}

TEST_F(CardsTest, TheFirstLineOfARunNamesTheDevice) {
  const std::string err =
      Succeed({"train", "--steps", "2", "--threads", "1", "--device", "cpu", "--out", "a"}).err;
  ExpectIn(err.substr(0, err.find('\n')), "device: cpu: ");
  ExpectIn(err.substr(0, err.find('\n')), ", 1 thread, f32");
}

TEST_F(CardsTest, TheDoctorListsThem) {
  const std::string out = Succeed({"doctor"}).out;
  ExpectIn(out, "engine cuda    cuda:0: Made 1, 3.0 GiB\n");
  ExpectIn(out, "cuda:1: Made 2, 5.0 GiB; Made 2 is too old; buy another\n");
  ExpectIn(out, "driver 7, library 8\n");
  ExpectIn(Succeed({"doctor", "--json"}).out, "\"devices\": [");
  SetWrong("crash");
  ExpectIn(Succeed({"doctor"}).out, "ended with signal 6");
}

}  // namespace
}  // namespace trireme::whole
