#include "cli/contact_sheet.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/base64.h"
#include "base/error.h"
#include "base/label.h"
#include "base/text.h"
#include "data/fields.h"
#include "data/thumbnail.h"

namespace trireme {
namespace {

constexpr int kSide = 96;  // pixels
constexpr size_t kMostSamples = 400, kMostOfClass = 10, kMostClasses = 100;
constexpr size_t kMostFields = 12;  // of a row

// Of each class, or of all where numbers are predicted.
std::vector<std::vector<int64_t>> FirstOfEach(const DataSet& data, size_t classes, size_t each) {
  std::vector<std::vector<int64_t>> first(classes);
  size_t full = 0;
  for (int64_t i = 0; i < data.train->size() && full < classes; ++i) {
    const int32_t label = data.task == Task::kRegression ? 0 : data.train->label(i);
    if (label < 0 || size_t(label) >= classes || first[size_t(label)].size() == each) continue;
    first[size_t(label)].push_back(i);
    full += first[size_t(label)].size() == each;
  }
  return first;
}

Pictures PicturesOfClass(const DataSet& data, std::string title,
                         const std::vector<int64_t>& samples) {
  Pictures block{.pictures = {}, .title = std::move(title)};
  for (const int64_t i : samples) {
    try {
      block.pictures.push_back({Base64(ThumbnailOf(*data.train, i, kSide)), data.train->NameOf(i)});
    } catch (const Error&) {  // the survey names it
    }
  }
  return block;
}

PageTable FirstRows(const DataSet& data, const std::vector<std::vector<int64_t>>& first) {
  const bool numbers = data.task == Task::kRegression;
  PageTable table{"", {"row", numbers ? "number" : "class"}, {}, ""};
  std::vector<float> values(size_t(data.shape.size()));
  const auto names = FieldNames(data.columns, data.codes, values.size());
  const size_t fields = std::min(names.size(), kMostFields);
  table.header.insert(table.header.end(), names.begin(), names.begin() + ptrdiff_t(fields));
  if (names.size() > fields) {
    table.caption = fmt::format("The first {} of {} columns.", fields, names.size());
  }
  for (size_t c = 0; c < first.size(); ++c) {
    for (const int64_t i : first[c]) {
      data.train->Read(i, values);
      const auto row = FieldsOf(values, data.codes);
      auto& cells = table.rows.emplace_back();
      cells = {
          data.train->NameOf(i),
          numbers ? fmt::format("{:.6g}", NumberOfLabel(data.train->label(i))) : data.classes[c]};
      cells.insert(cells.end(), row.begin(), row.begin() + ptrdiff_t(fields));
    }
  }
  return table;
}

PageTable ClassTable(const DataSet& data, const DataSurvey& survey) {
  PageTable table{"Samples of each class", {"class"}, {}, ""};
  for (const PartSurvey& part : survey.parts) {
    table.header.push_back(part.name == "train" ? "training" : part.name);
  }
  for (size_t c = 0; c < data.classes.size(); ++c) {
    table.rows.push_back({data.classes[c]});
    for (const PartSurvey& part : survey.parts) {
      table.rows.back().push_back(FormatCount(part.classes[c]));
    }
  }
  table.sortable = true;
  table.folded = data.classes.size() > 20;
  return table;
}

Section Samples(const DataSet& data, const DataSurvey& survey) {
  const bool numbers = data.task == Task::kRegression, pictures = ShowsPictures(data.shape);
  const size_t classes = numbers ? 1 : std::min(data.classes.size(), kMostClasses);
  const auto first =
      FirstOfEach(data, classes, std::clamp<size_t>(kMostSamples / classes, 1, kMostOfClass));
  Section section{fmt::format("First {}{} of the training part", pictures ? "pictures" : "rows",
                              numbers ? "" : " of each class"),
                  {}};
  if (!numbers && classes < data.classes.size()) {
    section.blocks.push_back(
        Paragraph{fmt::format("Of {} of the {} classes.", classes, data.classes.size())});
  }
  if (!pictures) {
    section.blocks.push_back(FirstRows(data, first));
    return section;
  }
  for (size_t c = 0; c < classes; ++c) {
    const std::string name = numbers ? "" : data.classes[c];
    const int64_t count = numbers ? survey.parts[0].samples : survey.parts[0].classes[c];
    section.blocks.push_back(
        PicturesOfClass(data, fmt::format("{} ({})", name, FormatCount(count)), first[c]));
  }
  return section;
}

}  // namespace

Page ContactSheet(const DataSet& data, const DataSurvey& survey) {
  Page page{data.name, "", {}};
  for (const PartSurvey& part : survey.parts) {
    page.subtitle +=
        fmt::format("{}{} to {}", page.subtitle.empty() ? "" : ", ", FormatCount(part.samples),
                    part.name == "validation" ? "validate" : part.name);
  }
  if (data.task == Task::kClassification) {
    page.sections.push_back({"Classes", {ClassTable(data, survey)}});
  }
  page.sections.push_back(Samples(data, survey));
  return page;
}

}  // namespace trireme
