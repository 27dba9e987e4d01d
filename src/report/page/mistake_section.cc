// What mistakes.json says of single test samples. It is untrusted: what is damaged is left out.
#include <fmt/format.h>

#include <optional>
#include <utility>

#include "base/base64.h"
#include "base/error.h"
#include "report/page/run_sections.h"

namespace trireme {
namespace {

constexpr size_t kMostShown = 100;

struct ReadMistake {
  std::string sample, label, prediction, probability, picture;
  std::vector<std::string> fields;
};

std::string TextOf(const Json& json) {
  return json.IsString() ? json.AsString() : fmt::format("{:.6g}", json.AsDouble());
}

std::vector<std::string> TextsIn(const Json& json, std::string_view key) {
  std::vector<std::string> texts;
  if (const Json* found = json.Find(key)) {
    for (const Json& item : found->Items()) texts.push_back(item.AsString());
  }
  return texts;
}

ReadMistake MistakeIn(const Json& json) {
  ReadMistake mistake{.sample = TextOf(json.At("sample")),
                      .label = TextOf(json.At("label")),
                      .prediction = TextOf(json.At("prediction"))};
  if (const Json* share = json.Find("probability")) {
    mistake.probability = fmt::format("{:.2f} %", 100 * share->AsDouble());
  }
  mistake.fields = TextsIn(json, "fields");
  if (const Json* picture = json.Find("picture")) {
    mistake.picture = picture->AsString();
    if (!IsBase64(mistake.picture)) throw Error("a picture is damaged");
  }
  return mistake;
}

Block PictureBlock(const std::vector<ReadMistake>& mistakes) {
  Pictures block;
  for (const ReadMistake& mistake : mistakes) {
    block.pictures.push_back(
        {.png = mistake.picture,
         .title = fmt::format("{}, taken for {}", mistake.label, mistake.prediction),
         .note = fmt::format("{} ({})", mistake.probability, mistake.sample)});
  }
  return block;
}

Block RowBlock(const std::vector<ReadMistake>& mistakes, const std::vector<std::string>& columns) {
  PageTable table{"", {"sample", "true", "predicted"}, {}, ""};
  const bool shares = !mistakes[0].probability.empty();
  if (shares) table.header.push_back("probability");
  for (const std::string& name : columns) table.header.push_back(name);
  for (const ReadMistake& mistake : mistakes) {
    auto& row = table.rows.emplace_back();
    row = {mistake.sample, mistake.label, mistake.prediction};
    if (shares) row.push_back(mistake.probability);
    for (size_t i = 0; i < columns.size(); ++i) {
      row.push_back(i < mistake.fields.size() ? mistake.fields[i] : "");
    }
  }
  return table;
}

}  // namespace

Section MistakeSection(std::span<const NamedRun> runs) {
  Section section{"Most certain mistakes", {}};
  if (runs.size() != 1 || !runs[0].data->summary || !runs[0].data->mistakes) return section;
  try {
    const Json& json = *runs[0].data->mistakes;
    std::vector<ReadMistake> mistakes;
    bool pictures = true;
    for (const Json& item : json.At("mistakes").Items()) {
      if (mistakes.size() == kMostShown) break;
      mistakes.push_back(MistakeIn(item));
      pictures = pictures && !mistakes.back().picture.empty();
    }
    if (mistakes.empty()) return section;
    const bool numbers = mistakes[0].probability.empty();
    if (numbers) section.title = "Largest errors";
    section.blocks.push_back(
        Paragraph{numbers ? "The test samples whose prediction is furthest off."
                          : "The test samples of which the network was most certain and wrong, "
                            "with the probability that it gave its answer. Samples like these may "
                            "be labelled wrongly, or be rare in the training part."});
    section.blocks.push_back(pictures ? PictureBlock(mistakes)
                                      : RowBlock(mistakes, TextsIn(json, "columns")));
  } catch (const Error&) {  // of another program: then there is no such section
    section.blocks.clear();
  }
  return section;
}

}  // namespace trireme
