#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/options.h"
#include "data/source.h"

namespace trireme {

// What a source is opened with.
struct SourceRequest {
  std::string spec;      // "mnist:DIR", for messages
  std::string argument;  // "DIR"; empty if there was none
  const DataOptions& options;
  std::span<const std::string> classes;  // of an earlier run whose labels are to be kept, or none
};

// A row of the list of sources: what `trireme list` prints and how a spec is opened.
struct SourceKind {
  const char* name;
  const char* syntax;
  const char* help;
  DataSet (*open)(const SourceRequest& request);  // without a test part: split by OpenData
};

std::span<const SourceKind> SourceKinds();

// Opens options.source, splits it where it has no test part, takes a validation part from what is
// left to train if one is asked for, and applies the limit to the training part. The random
// choices are functions of the seed. `classes` keeps the label numbers of an earlier run.
DataSet OpenData(const DataOptions& options, uint64_t seed,
                 std::span<const std::string> classes = {});

// Samples to classify.
struct Records {
  std::unique_ptr<Source> samples;
  bool labelled = false;
};

// Opens one file of records for a model that takes `shape` and answers with `classes`: csv, idx
// pictures, CIFAR-10 records, or one JPEG or PNG picture; the format is named ("csv:FILE",
// "idx:FILE", "cifar10:FILE", "image:FILE") or seen from the file.
Records OpenRecords(const std::string& spec, const SampleShape& shape,
                    std::span<const std::string> classes, const DataOptions& options);

}  // namespace trireme
