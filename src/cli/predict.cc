// What a trained model says of records.
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/files.h"
#include "cli/command.h"
#include "cli/open_model.h"
#include "cli/recipe_flags.h"
#include "data/csv_field.h"
#include "data/joined_source.h"
#include "data/sources.h"
#include "model/predictor.h"
#include "record/json.h"
#include "trainer/data_notes.h"

namespace trireme {
namespace {

constexpr size_t kTogether = 256;  // pictures

constexpr Flag kFlags[] = {
    {"--top", "K", "classes to show for each record (default: 3)"},
    {"--logits", "", "raw outputs as JSON, one object per record"},
    {"--json", "", "classes and probabilities, or numbers, as JSON, one object per record"},
    {"--csv", "", "classes and probabilities, or numbers, as a table, one line per record"},
    {"--checkpoint", "WHICH", "best, last or a step (default: last)"},
    {"--threads", "N", "compute threads, or auto", "trainer.threads"},
    kDeviceFlag,
};
constexpr Place kPlaces[] = {
    {"RUN", Place::kRequired, "a run's directory"},
    {"FILE", Place::kMany,
     "records: csv, idx images or CIFAR-10 (csv:FILE, idx:FILE, cifar10:FILE), or a JPEG or PNG "
     "image (image:FILE); - is the standard input"}};

std::vector<int> Best(std::span<const float> shares, size_t count) {
  std::vector<int> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return shares[a] > shares[b]; });
  order.resize(std::min(count, order.size()));
  return order;
}

std::vector<double> Doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

class Printer {
 public:
  Printer(const Args& args, const ModelCard& card, Output& out)
      : classes_(card.classes),
        target_(card.normalizer.target()),
        out_(out),
        top_(args.Number<int>("--top", 3)),
        logits_(args.Has("--logits")),
        json_(args.Has("--json")),
        csv_(args.Has("--csv")) {
    if (top_ < 1) throw UsageError("--top must be at least 1, got {}", top_);
    if (csv_ && (json_ || logits_)) {
      throw UsageError("--csv prints a table, --json and --logits print objects; choose one");
    }
    if (!csv_) return;
    std::string head = target_ ? "file,record,prediction" : "file,record,class";
    for (const std::string& name : classes_) head += "," + CsvField(name);
    out_.Write(head + "\n");
  }

  void Print(const std::string& file, int64_t index, const Prediction& prediction) {
    if (target_) return PrintNumber(file, index, prediction);
    const std::vector<int> best = Best(prediction.probabilities, size_t(top_));
    if (csv_) {
      std::string line =
          fmt::format("{},{},{}", CsvField(file), index, CsvField(classes_[size_t(best[0])]));
      for (const float share : prediction.probabilities) line += fmt::format(",{:.6g}", share);
      return out_.Write(line + "\n");
    }
    if (!logits_ && !json_) {
      std::string line = fmt::format("{} {}", file, index);
      for (const int i : best) {
        line += fmt::format("  {} {:.2f} %", classes_[i], 100 * prediction.probabilities[i]);
      }
      return out_.Write(line + "\n");
    }
    Json json = Json::Object();
    json.Add("file", file).Add("record", index).Add("class", classes_[best[0]]);
    if (logits_) json.Add("logits", Doubles(prediction.logits));
    if (json_) json.Add("probabilities", Doubles(prediction.probabilities));
    out_.Write(json.Text() + "\n");
  }

 private:
  void PrintNumber(const std::string& file, int64_t index, const Prediction& prediction) {
    const double number = target_->Original(prediction.logits[0]);
    if (csv_) return out_.Write(fmt::format("{},{},{:.7g}\n", CsvField(file), index, number));
    if (!logits_ && !json_) return out_.Write(fmt::format("{} {}  {:.7g}\n", file, index, number));
    Json json = Json::Object();
    json.Add("file", file).Add("record", index).Add("prediction", number);
    if (logits_) json.Add("logits", Doubles(prediction.logits));
    out_.Write(json.Text() + "\n");
  }

  const std::vector<std::string>& classes_;
  const std::optional<TargetScale> target_;  // none: classes
  Output& out_;
  int top_;
  bool logits_, json_, csv_;
};

// Files that can be read once only, a pipe or the standard input, as files that can be read again.
class Streams {
 public:
  // What to open for `file`.
  std::string PathOf(const std::string& file) {
    const size_t colon = file.find(':');  // csv:FILE
    if (colon != file.npos && !Exists(file)) {
      return file.substr(0, colon + 1) + PathOf(file.substr(colon + 1));
    }
    const std::string path = file == "-" ? "/dev/stdin" : file;
    std::error_code error;
    const auto kind = std::filesystem::status(path, error).type();
    using std::filesystem::file_type;
    if (kind != file_type::fifo && kind != file_type::character && kind != file_type::socket) {
      return path;
    }
    auto& copy = copies_[path];
    if (!copy) copy = std::make_unique<NamelessFile>(ReadFile(path, kMostBytes));
    return copy->path();
  }

  // A message with the names that the user gave.
  std::string InUsersWords(std::string text) const {
    for (const auto& [path, copy] : copies_) {
      if (!copy) continue;
      for (size_t at; (at = text.find(copy->path())) != text.npos;) {
        text.replace(at, copy->path().size(), path);
      }
    }
    return text;
  }

 private:
  static constexpr size_t kMostBytes = size_t{1} << 36;
  std::map<std::string, std::unique_ptr<NamelessFile>> copies_;
};

// Asks the model of one file after the other. One that cannot be read is named, and the next one's
// turn comes.
class Inquiry {
 public:
  Inquiry(const SavedModel& model, Engine& engine, Printer& printer, const Log& log, size_t files)
      : model_(model), predictor_(model, engine), printer_(printer), log_(log), files_(files) {}

  void Ask(const std::string& file) {
    Try([&] {
      Records records = Open(file);
      for (std::string& note : records.notes) note = streams_.InUsersWords(std::move(note));
      SayNotes(log_, records.notes);
      if (!records.samples->cuts()) {
        Flush();
        return Print(file, *records.samples);
      }
      names_.push_back(file);
      pictures_.push_back(std::move(records.samples));
      if (pictures_.size() == kTogether) Flush();
    });
  }

  // Pictures are shown to the model together; if one of them is damaged, each by itself.
  void Flush() {
    if (pictures_.empty()) return;
    const JoinedSource joined(std::exchange(pictures_, {}));
    const std::vector<std::string> names = std::exchange(names_, {});
    size_t printed = 0;
    try {
      predictor_.Run(joined, [&](int64_t index, const Prediction& prediction) {
        printer_.Print(names[size_t(index)], 0, prediction);
        printed = size_t(index) + 1;
      });
    } catch (const OutputError&) {
      throw;
    } catch (const Error&) {
      for (const std::string& name : std::span(names).subspan(printed)) {
        Try([&] { Print(name, *Open(name).samples); });
      }
    }
  }

  int failed() const { return failed_; }

 private:
  Records Open(const std::string& file) {
    return OpenRecords(streams_.PathOf(file), model_.card.shape, model_.card.known(),
                       model_.recipe.data);
  }
  void Print(const std::string& file, const Source& samples) {
    predictor_.Run(samples, [&](int64_t index, const Prediction& prediction) {
      printer_.Print(file, index, prediction);
    });
  }
  void Try(FunctionRef<void()> work) {
    try {
      work();
    } catch (const UsageError& error) {
      throw UsageError(streams_.InUsersWords(error.what()));
    } catch (const OutputError&) {  // no file's fault
      throw;
    } catch (const Error& error) {
      const std::string text = streams_.InUsersWords(error.what());
      if (files_ == 1) throw Error(text);
      Flush();  // what was asked before it
      ++failed_;
      log_.Warn("predict", "{}", text);
    }
  }

  const SavedModel& model_;
  Predictor predictor_;
  Printer& printer_;
  const Log& log_;
  Streams streams_;
  const size_t files_;              // that are asked of, in all
  std::vector<std::string> names_;  // of pictures that wait for others
  std::vector<std::unique_ptr<Source>> pictures_;
  int failed_ = 0;
};

int Run(const Args& args, Process& process) {
  const Log log(process.log);
  const std::vector<std::string> files = args.Many("FILE");
  if (files.empty()) {
    throw UsageError("FILE is missing; name a file of records, or - for the standard input");
  }
  const auto [model, backend] = OpenModel(args, log);
  Printer printer(args, model.card, process.out);
  Inquiry inquiry(model, *backend.engine, printer, log, files.size());
  for (const std::string& file : files) inquiry.Ask(file);
  inquiry.Flush();
  if (inquiry.failed()) {
    throw Error("{} of {} files could not be read", inquiry.failed(), files.size());
  }
  return 0;
}

}  // namespace

extern const Command kPredict;
const Command kPredict = {
    .name = "predict",
    .summary = "print a trained model's predictions for records",
    .usage = "trireme predict RUN FILE... [--top K] [--logits] [--json] [--csv]",
    .examples =
        "trireme predict runs/iris flowers.csv\n"
        "head -20 flowers.csv | trireme predict runs/iris -\n"
        "trireme predict runs/iris flowers.csv --csv > predictions.csv\n"
        "trireme predict runs/a t10k-images-idx3-ubyte.gz --top 1\n"
        "trireme predict runs/a cifar10:test_batch.bin --logits\n"
        "trireme predict runs/scenes *.jpg            # the top classes of each image\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
