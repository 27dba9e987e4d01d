#pragma once
#include "data/source.h"
#include "data/survey.h"
#include "report/page/page.h"

namespace trireme {

// A page of a source: how many samples each class has, and the first of each in the training part,
// as pictures or as rows. Those that cannot be read are passed over.
Page ContactSheet(const DataSet& data, const DataSurvey& survey);

}  // namespace trireme
