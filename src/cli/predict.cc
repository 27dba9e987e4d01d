// What a trained model says of records.
#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <utility>

#include "base/files.h"
#include "cli/command.h"
#include "cli/open_model.h"
#include "cli/prediction_text.h"
#include "cli/recipe_flags.h"
#include "data/joined_source.h"
#include "data/sources.h"
#include "model/predictor.h"
#include "trainer/data_notes.h"

namespace trireme {
namespace {

constexpr size_t kTogether = 256;  // pictures

constexpr Flag kFlags[] = {
    {"--files-from", "LIST",
     "predict for the files that LIST names, one per line (-: standard input)"},
    {"--top", "K", "classes to show for each record (default: 3; with --json and --csv: all)"},
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
  Inquiry(const SavedModel& model, Engine& engine, PredictionText& printer, const Log& log,
          bool alone)
      : model_(model), predictor_(model, engine), printer_(printer), log_(log), alone_(alone) {}

  void Ask(const std::string& file) {
    ++asked_;
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

  // Answers what waits. An Error if a file could not be read.
  void End() {
    Flush();
    if (failed_) throw Error("{} of {} files could not be read", failed_, asked_);
  }

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
      if (alone_) throw Error(text);
      Flush();  // what was asked before it
      ++failed_;
      log_.Warn("predict", "{}", text);
    }
  }

  const SavedModel& model_;
  Predictor predictor_;
  PredictionText& printer_;
  const Log& log_;
  Streams streams_;
  const bool alone_;                // a single file is asked of
  std::vector<std::string> names_;  // of pictures that wait for others
  std::vector<std::unique_ptr<Source>> pictures_;
  int asked_ = 0, failed_ = 0;  // files
};

void AskListed(const std::string& list, Inquiry& inquiry) {
  const bool standard = list == "-" || list == "/dev/stdin";
  std::ifstream file;
  if (!standard) {
    file.open(list);
    if (!file || std::filesystem::is_directory(list)) throw Error("cannot read {}", list);
  }
  std::istream& names = standard ? std::cin : file;
  int64_t line = 0;
  for (std::string name; std::getline(names, name);) {
    ++line;
    if (name.ends_with('\r')) name.pop_back();
    if (name.empty()) continue;
    if (standard && (name == "-" || name == "/dev/stdin")) {
      throw UsageError("line {} of the list names the standard input, which is the list", line);
    }
    inquiry.Ask(name);
  }
  if (names.bad()) throw Error("cannot read {}", list);
}

int Run(const Args& args, Process& process) {
  const Log log(process.log);
  const std::vector<std::string> files = args.Many("FILE");
  const auto list = args.Value("--files-from");
  if (list && !files.empty()) {
    throw UsageError("--files-from LIST takes the place of FILE; give one of them");
  }
  if (!list && files.empty()) {
    throw UsageError(
        "FILE is missing; name a file of records, or - for the standard input, or --files-from and "
        "a list of files");
  }
  const auto [model, backend] = OpenModel(args, log);
  PredictionText printer(args, model.card, process.out);
  Inquiry inquiry(model, *backend.engine, printer, log, files.size() == 1);
  for (const std::string& file : files) inquiry.Ask(file);
  if (list) AskListed(*list, inquiry);
  inquiry.End();
  return 0;
}

}  // namespace

extern const Command kPredict;
const Command kPredict = {
    .name = "predict",
    .summary = "print a trained model's predictions for records",
    .usage =
        "trireme predict RUN (FILE... | --files-from LIST) [--top K] [--logits] [--json] [--csv]",
    .examples =
        "trireme predict runs/iris flowers.csv\n"
        "head -20 flowers.csv | trireme predict runs/iris -\n"
        "trireme predict runs/iris flowers.csv --csv > predictions.csv\n"
        "trireme predict runs/a t10k-images-idx3-ubyte.gz --top 1\n"
        "trireme predict runs/a cifar10:test_batch.bin --logits\n"
        "trireme predict runs/scenes *.jpg            # the top classes of each image\n"
        "find photos -name '*.jpg' | trireme predict runs/scenes --files-from - --csv --top 2\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
