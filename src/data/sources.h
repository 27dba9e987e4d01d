#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/framing.h"
#include "data/options.h"
#include "data/source.h"

namespace trireme {

// What a source is opened with.
struct SourceRequest {
  std::string spec;      // "mnist:DIR", for messages
  std::string argument;  // "DIR"; empty if there was none
  const DataOptions& options;
  const KnownData& known;
};

// A row of the list of sources: what `trireme list` prints and how a spec is opened.
struct SourceKind {
  const char* name;
  const char* syntax;
  const char* help;
  DataSet (*open)(const SourceRequest& request);  // without a test part: split by OpenData
  bool cuts = false;  // pictures of any size, of which data.size is shown (Source::cuts)
};

std::span<const SourceKind> SourceKinds();

// Opens options.source, splits it where it has no test part, takes a validation part from what is
// left to train if one is asked for, and applies the limit to the training part. The random
// choices are functions of the seed.
DataSet OpenData(const DataOptions& options, uint64_t seed, const KnownData& known = {});

// All of this but the opening, for samples that are there already.
DataSet DivideData(DataSet data, const DataOptions& options, uint64_t seed);

// Opens options.source to test a model with that takes `shape`, and was trained on something else:
// the test part where it has one of its own, or else all of it, and `train` is null. Of the options
// only those count that say how the source is read.
DataSet OpenForTest(DataOptions options, const SampleShape& shape, const KnownData& known);

// Whether the source decodes pictures and cuts them to data.size (Source::cuts).
bool CutsPictures(const DataOptions& options);

// The size that suits the pictures of a source that cuts (PictureSource::FindOwnSize). The usual
// one for other sources, and where they cannot be looked at.
OwnSize FindOwnSize(const DataOptions& options);

// Samples to classify.
struct Records {
  std::unique_ptr<Source> samples;
  bool labelled = false;
  std::vector<std::string> notes = {};  // what may be wrong with them, a sentence each
};

// Opens one file of records for a model that takes `shape` and knows the classes: csv, idx
// pictures, CIFAR-10 records, or one JPEG or PNG picture; the format is named ("csv:FILE",
// "idx:FILE", "cifar10:FILE", "image:FILE") or seen from the file.
Records OpenRecords(const std::string& spec, const SampleShape& shape, const KnownData& known,
                    const DataOptions& options);

}  // namespace trireme
