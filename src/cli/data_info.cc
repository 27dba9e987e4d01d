// What a source of samples holds, and what may be wrong with it.
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "cli/contact_sheet.h"
#include "cli/pack_place.h"
#include "data/pack.h"
#include "data/sources.h"
#include "data/survey.h"
#include "recipe/trainer_options.h"
#include "record/json.h"
#include "report/page/page_html.h"
#include "trainer/data_notes.h"

namespace trireme {
namespace {

constexpr size_t kShown = 20;  // lines of a list
constexpr int kSide = 64;      // pixels to which pictures are decoded: enough to tell them apart
constexpr int kPageSide = 96;  // if they are to be looked at

constexpr Place kPlaces[] = {
    {"SOURCE", Place::kRequired, "as for --data (`trireme list data`), or a pack"}};
constexpr Flag kFlags[] = {{"--quick", "", "only count: read no sample"},
                           {"--json", "", "print JSON"},
                           {"--page", "FILE",
                            "also write a page with the first samples of each class; - is the "
                            "standard output, instead of the text"},
                           kThreadsFlag,
                           kSetFlag};

// A pack may come without the word before it.
std::string SourceOf(const std::string& given) {
  std::error_code ignored;
  const bool file = std::filesystem::is_regular_file(given, ignored);
  return file && !IsNoPack(given) ? "pack:" + given : given;
}

std::string TitleOf(const PartSurvey& part) {
  return part.name == "train" ? "training" : part.name;
}

// The columns of a table, or the channels of a picture.
struct ValueRow {
  std::string name, kind;
  std::vector<int> channels;  // of the sample: several for texts
};

std::vector<ValueRow> RowsOf(const DataSet& data) {
  std::vector<ValueRow> rows;
  const bool table = data.shape.height == 1 && data.shape.width == 1;
  const auto named = [&](size_t column) {
    if (column < data.columns.values.size()) return data.columns.values[column];
    return fmt::format("{} {}", table ? "column" : "channel", column + 1);
  };
  int channel = 0;
  for (size_t i = 0; i < data.codes.size(); ++i) {
    const ColumnCode& code = data.codes[i];
    ValueRow& row = rows.emplace_back(named(i), code.text() ? "text" : "numbers");
    for (int k = 0; k < code.inputs(); ++k) row.channels.push_back(channel++);
  }
  if (rows.empty()) {
    for (int c = 0; c < data.shape.channels; ++c)
      rows.push_back({named(size_t(c)), "numbers", {c}});
  }
  return rows;
}

Json RowJson(const ValueRow& row, const ColumnCode* code, const ChannelStatistics& values) {
  Json json = Json::Object();
  json.Add("name", row.name).Add("kind", row.kind);
  if (code != nullptr && code->text()) {
    Json texts = Json::Object();
    for (size_t k = 0; k < row.channels.size(); ++k) {
      const auto& c = values.channel(row.channels[k]);
      texts.Add(code->categories[k], int64_t(std::llround(c.mean * c.count)));
    }
    return json.Add("texts", std::move(texts));
  }
  const auto& c = values.channel(row.channels[0]);
  json.Add("mean", c.mean).Add("deviation", std::sqrt(c.squares / std::max(1.0, c.count)));
  json.Add("min", c.min).Add("max", c.max);
  if (code != nullptr && code->flagged) {
    const auto& missing = values.channel(row.channels[1]);
    json.Add("missing", int64_t(std::llround(missing.mean * missing.count)));
  }
  return json;
}

std::string RowText(const ValueRow& row, const ColumnCode* code, const ChannelStatistics& values) {
  const Json json = RowJson(row, code, values);
  std::string text = fmt::format("  {}: ", row.name);
  if (const Json* texts = json.Find("texts")) {
    size_t shown = 0;
    for (const auto& [name, count] : texts->Members()) {
      if (shown++ == kShown) break;
      text += fmt::format("{}{} {}", shown == 1 ? "" : ", ", name, FormatCount(count.AsInt()));
    }
    const size_t more = texts->Members().size() - std::min(texts->Members().size(), kShown);
    return text + (more ? fmt::format(" and {} more\n", more) : "\n");
  }
  text += fmt::format("{:.4g} to {:.4g}, mean {:.4g}, deviation {:.4g}", json.At("min").AsDouble(),
                      json.At("max").AsDouble(), json.At("mean").AsDouble(),
                      json.At("deviation").AsDouble());
  if (const Json* missing = json.Find("missing")) {
    text += fmt::format(", {} missing", FormatCount(missing->AsInt()));
  }
  return text + "\n";
}

class Report {
 public:
  // `pack`: the file, if it is one.
  Report(const DataSet& data, const DataSurvey& survey, bool read, std::string pack)
      : data_(data), survey_(survey), read_(read), pack_(std::move(pack)), rows_(RowsOf(data)) {}

  std::string AsJson() const {
    Json json = Json::Object();
    json.Add("source", data_.name);
    json.Add("shape",
             std::vector<int>{data_.shape.height, data_.shape.width, data_.shape.channels});
    if (data_.task == Task::kRegression) json.Add("task", NameOf(data_.task));
    json.Add("classes", data_.classes);
    for (const PartSurvey& part : survey_.parts) json.Add(part.name, part.samples);
    if (!pack_.empty()) AddPack(json);
    Json parts = Json::Object();
    for (const PartSurvey& part : survey_.parts) parts.Add(part.name, PartJson(part));
    json.Add("parts", std::move(parts));
    json.Add("left_out", data_.left_out);
    if (!read_) return json.Text() + "\n";
    Json values = Json::Array();
    for (size_t i = 0; i < rows_.size(); ++i) {
      values.Append(RowJson(rows_[i], CodeOf(i), survey_.values));
    }
    json.Add("values", std::move(values)).Add("contradictions", survey_.contradictions);
    return json.Text() + "\n";
  }

  std::string AsText() const {
    std::string text = Head();
    if (!pack_.empty()) text += PackText();
    for (size_t c = 0; c < data_.classes.size(); ++c) {
      const auto count = [&](std::string_view name) {
        for (const PartSurvey& part : survey_.parts) {
          if (part.name == name) return part.classes[c];
        }
        return int64_t{0};
      };
      text += fmt::format("  {}: {}\n", data_.classes[c],
                          PartsText(count("train"), count("validation"), count("test")));
    }
    if (data_.task == Task::kRegression) text += TargetText();
    if (!read_) return text;
    text += Sizes();
    text += "values of the training part:\n";
    for (size_t i = 0; i < std::min(rows_.size(), kShown); ++i) {
      text += RowText(rows_[i], CodeOf(i), survey_.values);
    }
    if (rows_.size() > kShown) text += fmt::format("  and {} more\n", rows_.size() - kShown);
    return text + Doubts();
  }

 private:
  const ColumnCode* CodeOf(size_t row) const {
    return row < data_.codes.size() ? &data_.codes[row] : nullptr;
  }

  void AddPack(Json& json) const {
    const Pack pack(pack_);
    const bool pixels = pack.head().kind == PackKind::kPixels;
    json.Add("kind", pixels ? "pixels" : "files").Add("bytes", int64_t(pack.bytes()));
    if (pixels) json.Add("size", int64_t{pack.head().side});
  }

  std::string PackText() const {
    const Pack pack(pack_);
    return fmt::format("  {}, {}\n", FormatBytes(double(pack.bytes())),
                       pack.head().kind == PackKind::kPixels
                           ? fmt::format("decoded, shorter side {} pixels", pack.head().side)
                           : "original files");
  }

  Json PartJson(const PartSurvey& part) const {
    Json json = Json::Object();
    json.Add("samples", part.samples).Add("classes", part.classes);
    if (part.target.channels() > 0) json.Add("target", TargetJson(part));
    if (!read_) return json;
    json.Add("repeated", part.repeated);
    if (&part != &survey_.parts[0]) json.Add("in_training", part.in_training);
    json.Add("broken", part.broken);
    if (part.sizes.empty()) return json;
    Json sizes = Json::Array();
    for (const SampleShape& size : part.sizes) {
      sizes.Append(std::vector<int>{size.width, size.height});
    }
    return json.Add("sizes", std::move(sizes));
  }

  Json TargetJson(const PartSurvey& part) const {
    return RowJson({data_.columns.label, "numbers", {0}}, nullptr, part.target);
  }

  // A line for each part.
  std::string TargetText() const {
    std::string text = fmt::format("numbers to predict{}{}:\n",
                                   data_.columns.label.empty() ? "" : ", ", data_.columns.label);
    for (const PartSurvey& part : survey_.parts) {
      text += RowText({TitleOf(part), "numbers", {0}}, nullptr, part.target);
    }
    return text;
  }

  std::string Head() const {
    int64_t all = 0, test = 0, validation = 0;
    for (const PartSurvey& part : survey_.parts) {
      all += part.samples;
      if (part.name == "test") test = part.samples;
      if (part.name == "validation") validation = part.samples;
    }
    const SampleShape& s = data_.shape;
    const std::string what =
        s.height == 1 && s.width == 1 ? fmt::format("rows of {}", Counted(s.channels, "value"))
        : data_.train->cuts()         ? "images"
                              : fmt::format("images of {}x{}x{}", s.height, s.width, s.channels);
    const std::string learnt = data_.task == Task::kRegression
                                   ? "a number to predict"
                                   : fmt::format("{} classes", data_.classes.size());
    return fmt::format("{}: {} {}, {}, {}\n", data_.name, FormatCount(all), what, learnt,
                       PartsText(all - test - validation, validation, test));
  }

  std::string Sizes() const {
    std::string text;
    for (const PartSurvey& part : survey_.parts) {
      if (part.sizes.empty()) continue;
      const auto show = [](const SampleShape& s) {
        return fmt::format("{}x{}", s.width, s.height);
      };
      text += fmt::format("sizes of {} images: {} to {}, half of them up to {}\n", TitleOf(part),
                          show(part.sizes[0]), show(part.sizes[2]), show(part.sizes[1]));
    }
    return text;
  }

  // What a reader should look at.
  std::string Doubts() const {
    std::string text;
    for (const PartSurvey& part : survey_.parts) {
      if (part.in_training > 0) {
        text += fmt::format("{} of the {} part {} also in the training part\n",
                            Counted(part.in_training, "sample"), TitleOf(part),
                            part.in_training == 1 ? "is" : "are");
      }
      if (part.repeated > 0) {
        text +=
            fmt::format("{} of the {} part {} an earlier one\n", Counted(part.repeated, "sample"),
                        TitleOf(part), part.repeated == 1 ? "repeats" : "repeat");
      }
      for (size_t i = 0; i < std::min(part.broken.size(), kShown); ++i) {
        text += "broken: " + part.broken[i] + "\n";
      }
      if (!part.broken.empty()) {
        text += fmt::format("{} of the {} part cannot be read\n",
                            Counted(int64_t(part.broken.size()), "sample"), TitleOf(part));
      }
    }
    if (survey_.contradictions > 0) {
      text += fmt::format("{} with different labels on equal samples\n",
                          Counted(survey_.contradictions, "sample"));
    }
    return text.empty() ? "no repeated, shared or broken samples\n" : text;
  }

  const DataSet& data_;
  const DataSurvey& survey_;
  const bool read_;
  const std::string pack_;
  const std::vector<ValueRow> rows_;
};

int Run(const Args& args, Process& process) {
  const Log log(process.log);
  DataOptions options;
  Sections sections;
  sections.Add("data", options);
  args.ApplyTo(sections);
  options.source = SourceOf(args.Required("SOURCE"));
  if (CutsPictures(options) && options.size == 0) {
    options.size = args.Has("--page") ? kPageSide : kSide;
  }
  const DataSet data = OpenData(options, TrainerOptions().seed);
  SayLeftOut(log, data.left_out);
  SayNotes(log, data.notes);
  const bool read = !args.Has("--quick");
  if (read && data.train->cuts()) {
    log.Info("data", "reading {} (--quick only counts)",
             Counted(data.train->size() + data.test->size(), "image"));
  }
  const DataSurvey survey = SurveyData(data, read ? ThreadsOf(args) : 0);
  const std::string pack = options.source.starts_with("pack:") ? options.source.substr(5) : "";
  const Report report(data, survey, read, pack);
  const auto page = args.Value("--page");
  const bool to_output = page && process.out.Is(*page);
  if (page) {
    const std::string html = PageHtml(ContactSheet(data, survey));
    to_output ? process.out.Write(html) : ReplaceFile(*page, html);
  }
  if (!to_output) process.out.Write(args.Has("--json") ? report.AsJson() : report.AsText());
  return 0;
}

}  // namespace

extern const Command kDataInfo;
const Command kDataInfo = {
    .name = "data info",
    .summary = "count and check the samples of a source: classes, values, repeated and broken ones",
    .usage = "trireme data info SOURCE [--quick] [--json] [--page FILE] [--set data.KEY=VALUE]",
    .examples =
        "trireme data info csv:table.csv\n"
        "trireme data info images:photos --quick      # only counts\n"
        "trireme data info photos.pack\n"
        "trireme data info images:photos --page photos.html\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
