// Pages as a browser sees them: no error, nothing fetched, every chart whole, no text on another.
// With TRIREME_KEEP_PAGES=DIR the pages stay there, to be looked at.
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "record/metrics.h"
#include "report/page/page_json.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

namespace fs = std::filesystem;

const std::string kChromium = "chromium";

Curve Points(std::string name, CurveKind kind, std::vector<double> x, std::vector<double> y,
             double spread = 0) {
  Curve curve{std::move(name), kind, std::move(x), std::move(y), {}, {}};
  for (const double value : curve.y) {
    if (spread == 0) break;
    curve.low.push_back(value * (1 - spread));
    curve.high.push_back(value * (1 + spread));
  }
  return curve;
}

// As a sweep over ranks fills it.
Page SweepPage() {
  const std::vector<double> ranks{1, 2, 4, 8};
  LineChart speed{"Speed-up over ranks", {"ranks", "", true}, {"speed-up", ""}, {}, ""};
  speed.y.logarithmic = true;
  speed.curves = {
      Points("threads", CurveKind::kMeasured, ranks, {1, 1.91, 3.4, 5.9}, 0.05),
      Points("shm, batch_per_worker 64", CurveKind::kMeasured, ranks, {1, 1.95, 3.7, 7.1}, 0.03),
      Points("ideal", CurveKind::kIdeal, ranks, ranks)};
  speed.caption = "Medians of 3 repetitions; bars from the smallest to the largest.";
  LineChart efficiency{"Efficiency", {"ranks", ""}, {"efficiency", "%"}, {}, ""};
  efficiency.curves = {
      Points("threads", CurveKind::kMeasured, ranks, {100, 95, 85, 74}, 0.05),
      Points("shm, batch_per_worker 64", CurveKind::kMeasured, ranks, {100, 98, 93, 89}, 0.03)};
  BarChart times{"Time of an epoch", {"time", "s"}, {}, {"computing", "waiting"}, {{}, {}}, "",
                 "combination"};
  for (const char* transport : {"threads", "shm"}) {
    for (const int r : {1, 2, 4, 8}) {
      times.bars.push_back("transport.name=" + std::string(transport) +
                           " ranks=" + std::to_string(r));
      times.values[0].push_back(60.0 / r);
      times.values[1].push_back(2.0 * r);
    }
  }
  PageTable table{"All combinations",
                  {"transport.name", "transport.ranks", "median s", "spread", "speed-up", "error"},
                  {{"threads", "1", "61.2", "2 %", "1.00", ""},
                   {"shm", "2", "-", "-", "-", "rank 1 of 2: nothing from rank 0 for 30 s"}},
                  ""};
  return {"Sweep of fashion-cnn",
          "2 x 4 combinations, 3 repetitions",
          {{"Scaling", {speed, efficiency, times}},
           {"Numbers",
            {table, Commands{{"trireme sweep fashion-cnn --vary transport.ranks=1,2,4,8"}}}}}};
}

// As a replay fills it: published figures beside ours and a prediction.
Page ReplayPage() {
  const std::vector<double> nodes{1, 2, 4, 8, 16};
  LineChart time{"Time of training over nodes", {"nodes", "", true}, {"time", "min", true}, {}, ""};
  time.curves = {Points("published", CurveKind::kPublished, nodes, {32.1, 16.7, 8.57, 4.5, 2.32}),
                 Points("measured here, 1/100 of the size", CurveKind::kMeasured, {1, 2, 4},
                        {30, 17, 10}, 0.1),
                 Points("predicted", CurveKind::kPredicted, nodes, {30, 16.8, 9.6, 5.9, 4.1}),
                 Points("ideal", CurveKind::kIdeal, nodes, {32.1, 16.05, 8.02, 4.01, 2.01})};
  HeatChart heat{"Samples x workers", "samples of a step", "workers", {}, {}, {}, ""};
  for (int r = 0; r < 12; ++r) {
    heat.rows.push_back(std::to_string(16 << r));
    heat.values.emplace_back();
    for (int c = 0; c < 12; ++c) heat.values.back().push_back((r + 1) * (c + 1) * 37);
  }
  for (int c = 0; c < 12; ++c) heat.columns.push_back("workers " + std::to_string(c + 1));
  LineChart band{"Loss with its spread", {"step", ""}, {"loss", ""}, {}, ""};
  Curve wide{"ours", CurveKind::kMeasured, {}, {}, {}, {}};
  for (int i = 0; i < 3000; ++i) {
    const double y = 2.3 * std::exp(-i / 700.0) + 0.1 + (i == 1500 ? 1 : 0);
    wide.x.push_back(i);
    wide.y.push_back(i > 2000 && i < 2100 ? NAN : y);
    wide.low.push_back(0.8 * y);
    wide.high.push_back(1.2 * y);
  }
  band.curves = {wide, Points("published", CurveKind::kPublished, {0, 1000, 2000, 3000},
                              {2.3, 0.7, 0.25, 0.12})};
  return {
      "Replay of ddp-sweep",
      "published figures beside ours",
      {{"",
        {Paragraph{"The published numbers are from the project's report."}, time, band, heat}}}};
}

class PageTest : public WholeTest {
 protected:
  // What check-page.js finds in the page at this width; its first line says what it saw.
  std::string Look(const std::string& page, int width) {
    std::string html = Read(page);
    const std::string listen =
        "<script>window.pageErrors=[];addEventListener('error',function(e){pageErrors.push(e."
        "message)});addEventListener('securitypolicyviolation',function(e){pageErrors.push(e."
        "violatedDirective)})</script>";
    html.insert(html.find("<head>") + 6, listen);
    const std::string check =
        ReadFile(std::string(TRIREME_SOURCE_DIR) + "/tests/support/check-page.js");
    html.insert(html.rfind("</body>"), "<script>" + check + "</script>");
    Write("checked.html", html);
    const std::string dom = Shell("timeout 100 " + kChromium +
                                  " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage" +
                                  " --user-data-dir=" + At("profile") +
                                  " --virtual-time-budget=10000 --enable-logging=stderr" +
                                  " --window-size=" + std::to_string(width) +
                                  ",900 --dump-dom file://" + At("checked.html"));
    if (dom.find("CONSOLE") != dom.npos) ADD_FAILURE() << dom.substr(dom.find("CONSOLE"), 400);
    const std::string begin = "<pre id=\"findings\">";
    const size_t at = dom.find(begin);
    if (at == dom.npos) return "no findings:\n" + dom.substr(0, 2000);
    return dom.substr(at + begin.size(), dom.find("</pre>", at) - at - begin.size());
  }

  void ExpectGood(const std::string& page, int charts) {
    if (const char* keep = std::getenv("TRIREME_KEEP_PAGES")) {
      fs::create_directories(keep);
      std::string name = page;
      for (char& c : name) c = c == '/' ? '-' : c;
      fs::copy_file(At(page), fs::path(keep) / name, fs::copy_options::overwrite_existing);
    }
    for (const int width : {1280, 500}) {
      const std::string findings = Look(page, width);
      const size_t line = findings.find('\n');
      EXPECT_EQ(findings.substr(line + 1), "\n") << page << " at " << width;
      const std::string seen = "seen " + std::to_string(charts) + " charts";
      EXPECT_EQ(findings.substr(0, seen.size()), seen) << findings.substr(0, line);
      RecordProperty(page + std::to_string(width), findings.substr(0, line));
    }
  }

  void SetUp() override {
    if (std::system("command -v chromium >/dev/null 2>&1") != 0) {
      GTEST_SKIP() << "chromium is not installed (apt-get install chromium fonts-dejavu-core)";
    }
  }

  void ReportOf(const std::string& folder, const Page& page) {
    fs::create_directories(At(folder));
    Write(folder + "/page.json", PageJson(page));
    Succeed({"report", folder});
  }
};

TEST_F(PageTest, OfOneRunAndOfThree) {
  const Words common{"--epochs", "12", "--quiet", "--set", "trainer.metrics_steps=3"};
  Succeed(Words{"train", "--out", "runs/one", "--ranks", "2"} + common);
  Succeed(Words{"train", "--out", "runs/two", "--ranks", "3", "--lr", "0.05"} + common);
  Succeed(Words{"train", "--out", "runs/a-third-with-a-name-that-is-rather-long", "--ranks", "4",
                "--strategy", "easgd", "--epochs", "12", "--quiet"});
  Succeed({"report", "runs/one"});
  // The time of ranks, the confusion, ROC curves, and over four axes each: loss, accuracy,
  // throughput, learning rate, bytes.
  ExpectGood("runs/one/report.html", 1 + 1 + 1 + 4 * 5);
  Succeed({"report", "runs/one", "runs/two", "runs/a-third-with-a-name-that-is-rather-long",
           "--out", "three.html"});
  // Loss and accuracy are two each; three matrices, three with ROC curves; staleness.
  ExpectGood("three.html", 1 + 3 + 3 + 1 + 4 * 7);
}

// From eight runs on they are rows, and one legend is enough.
TEST_F(PageTest, OfFiftyThreeRuns) {
  Words report{"report", "--out", "many.html"};
  for (int r = 0; r < 53; ++r) {
    const std::string run = "runs/lr-" + std::to_string(r);
    const double rate = 0.001 * (r + 1);
    Write(run + "/config.toml", "[optimizer]\nlr = " + std::to_string(rate) + "\n");
    std::string lines;
    for (int i = 1; i <= 40; ++i) {
      EpochRecord epoch;
      epoch.epoch = i;
      epoch.step = 100 * i;
      epoch.samples = 6400 * i;
      epoch.time = 0.5 * i;
      epoch.seconds = 0.5;
      epoch.samples_per_second = 12800 + 40 * r;
      epoch.lr = rate;
      epoch.train_loss = 2.3 / (1 + i * rate * 50);
      epoch.test_loss = *epoch.train_loss + 0.05;
      epoch.train_accuracy = 1 - *epoch.train_loss / 3;
      epoch.test_accuracy = 1 - *epoch.test_loss / 3;
      epoch.times.forward = 0.2;
      epoch.times.backward = 0.3;
      lines += ToJson(epoch).Text() + "\n";
    }
    Write(run + "/metrics.jsonl", lines);
    trireme::Summary summary;
    summary.confusion = {{9, 1}, {2, 8 + r}};
    summary.classes = {"cat", "dog"};
    Write(run + "/summary.json", ToJson(summary).Text(1));
    report.push_back(run);
  }
  Succeed(report);
  EXPECT_LT(fs::file_size(At("many.html")), size_t{3} << 19);  // 1.5 MB
  // The time of ranks, four matrices, and over four axes each: loss and accuracy (twice),
  // throughput, learning rate.
  ExpectGood("many.html", 1 + 4 + 4 * 6);
}

TEST_F(PageTest, OfASweepAndOfAReplay) {
  ReportOf("sweep", SweepPage());
  ExpectGood("sweep/report.html", 3);
  ReportOf("replay", ReplayPage());
  ExpectGood("replay/report.html", 3);
}

TEST_F(PageTest, OfAHundredThousandStepsIsSmallAndOpensAtOnce) {
  Write("long/config.toml", "[model]\nname = \"mlp:4-3\"\n");
  std::string lines;
  for (int i = 1; i <= 100000; ++i) {
    StepRecord step;
    step.epoch = i / 1000;
    step.step = i;
    step.samples = 64 * i;
    step.time = 0.01 * i;
    step.train_loss = 2.3 / (1 + i * 1e-3) + 0.05 * std::sin(i * 12.9898) + (i == 77777 ? 3 : 0);
    step.lr = 0.1 * (1 - i * 1e-5);
    step.samples_per_second = 6400 + 500 * std::sin(i * 78.233);
    lines += ToJson(step).Text() + "\n";
    if (i % 1000) continue;
    EpochRecord epoch;
    epoch.epoch = i / 1000;
    epoch.step = i;
    epoch.samples = 64 * i;
    epoch.time = 0.01 * i;
    epoch.train_loss = step.train_loss;
    epoch.test_loss = step.train_loss;
    epoch.test_accuracy = 1 - 0.9 / (1 + i * 1e-3);
    epoch.times.forward = 3;
    lines += ToJson(epoch).Text() + "\n";
  }
  Write("long/metrics.jsonl", lines);
  Succeed({"report", "long"});
  EXPECT_LT(fs::file_size(At("long/report.html")), size_t{2} << 20);
  EXPECT_NE(Read("long/report.html").find("100,000 points"), std::string::npos);
  ExpectGood("long/report.html", 1 + 4 * 4);
}

}  // namespace
}  // namespace trireme::whole
