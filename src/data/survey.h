#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/source.h"

namespace trireme {

// What one part of a data set holds.
struct PartSurvey {
  std::string name;  // train, validation, test
  int64_t samples = 0;
  std::vector<int64_t> classes;    // samples of each
  ChannelStatistics target{0};     // of labels that are numbers: one channel
  std::vector<SampleShape> sizes;  // of pictures: smallest, middle, largest; empty: all are alike
  int64_t repeated = 0;            // samples whose values an earlier one of the part has
  int64_t in_training = 0;         // of the other parts: samples whose values the training part has
  std::vector<std::string> broken;  // what is wrong with each sample that cannot be read
};

struct DataSurvey {
  std::vector<PartSurvey> parts;  // training first
  ChannelStatistics values{0};    // of the training part's raw values
  int64_t contradictions = 0;     // values that samples with different labels have
};

// Reads every sample once, on `threads` threads; 0: none is read, only classes are counted.
DataSurvey SurveyData(const DataSet& data, int threads);

}  // namespace trireme
