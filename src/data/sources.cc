#include "data/sources.h"

#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/bytes.h"
#include "data/catalogue.h"
#include "data/cifar.h"
#include "data/csv_source.h"
#include "data/folds.h"
#include "data/given.h"
#include "data/idx.h"
#include "data/images.h"
#include "data/iris.h"
#include "data/pack.h"
#include "data/picture_source.h"
#include "data/split.h"
#include "data/synthetic.h"

namespace trireme {
namespace {

constexpr double kTestFraction = 0.2;
constexpr const char* kFashionFolder = "/usr/share/datasets/fashion-mnist";

const std::string& RequireArgument(const SourceRequest& request, const char* syntax) {
  if (request.argument.empty()) {
    throw UsageError("data.source = '{}' has no path; expected {}", request.spec, syntax);
  }
  return request.argument;
}

const std::string& RequireFolderArgument(const SourceRequest& request, const char* syntax) {
  const std::string& folder = RequireArgument(request, syntax);
  RequireFolder(folder, request.spec);
  return folder;
}

DataSet OpenIrisSource(const SourceRequest& request) {
  if (!request.argument.empty()) {
    throw UsageError(
        "data.source = '{}': iris is built in and takes no file; use csv:FILE to read one",
        request.spec);
  }
  return OpenIris();
}

DataSet OpenCsvSource(const SourceRequest& request) {
  return OpenCsv(RequireArgument(request, "csv:FILE"), request.options, request.known);
}

DataSet OpenIdxSource(const SourceRequest& request) {
  return OpenIdxFolder(RequireFolderArgument(request, "idx:DIR"), {});
}

// The folder that is named, else where `trireme data get` has put it, else where a package has.
std::string FolderFor(const SourceRequest& request, const std::string& name,
                      const char* packaged = nullptr, const char* package = "") {
  std::string folder = request.argument;
  if (folder.empty()) folder = FetchedFolder(name);
  std::error_code ignored;
  if (folder.empty() && packaged != nullptr && std::filesystem::exists(packaged, ignored)) {
    folder = packaged;
  }
  if (folder.empty()) {
    throw Error(
        "{0} is not on this machine; fetch it: trireme data get {0}{1}, or name its folder: "
        "{0}:DIR",
        name, package);
  }
  RequireFolder(folder, request.spec);
  return folder;
}

DataSet OpenMnistSource(const SourceRequest& request) {
  return OpenIdxFolder(FolderFor(request, "mnist"),
                       {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

DataSet OpenFashionSource(const SourceRequest& request) {
  const std::string folder = FolderFor(request, "fashion-mnist", kFashionFolder,
                                       ", or install the Debian package dataset-fashion-mnist");
  return OpenIdxFolder(folder, {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal",
                                "Shirt", "Sneaker", "Bag", "Ankle boot"});
}

DataSet OpenCifarSource(const SourceRequest& request) {
  return OpenCifarFolder(FolderFor(request, "cifar10"));
}

DataSet OpenImagesSource(const SourceRequest& request) {
  return OpenImages(RequireFolderArgument(request, "images:DIR"), request.options,
                    request.known.classes);
}

DataSet OpenPackSource(const SourceRequest& request) {
  return OpenPack(RequireArgument(request, "pack:FILE"), request.options, request.known.classes);
}

DataSet OpenSyntheticSource(const SourceRequest& request) {
  return OpenSynthetic(RequireArgument(request, "synthetic:HxWxC:CLASSES:N"));
}

// Where there is such memory, OpenGiven is called.
DataSet OpenMemorySource(const SourceRequest& request) {
  throw Error(
      "data.source = '{}': these samples were in the memory of the program that trained with them; "
      "train on in that program, or name others: --data csv:FILE",
      request.spec);
}

constexpr SourceKind kSources[] = {
    {"iris", "iris", "Fisher's 150 flowers, 4 numbers, 3 classes; built in", OpenIrisSource},
    {"csv", "csv:FILE[,[VALIDATION,]TEST]",
     "numbers, texts and a label per line, separated by commas, semicolons or tabs, plain or .gz; "
     "one file, or one for each part; data.label and data.id choose columns",
     OpenCsvSource},
    {"idx", "idx:DIR",
     "images in MNIST's format: train-images-idx3-ubyte (or idx4), train-labels-idx1-ubyte, "
     "t10k-*; plain or .gz",
     OpenIdxSource},
    {"mnist", "mnist[:DIR]",
     "handwritten digits, the four idx files; without DIR, those that trireme data get has fetched",
     OpenMnistSource},
    {"fashion-mnist", "fashion-mnist[:DIR]",
     "clothing, the four idx files; without DIR, those that trireme data get has fetched, or those "
     "of Debian's dataset-fashion-mnist",
     OpenFashionSource},
    {"cifar10", "cifar10[:DIR]",
     "the binary version: data_batch*.bin, test_batch*.bin; plain or .gz; without DIR, those that "
     "trireme data get has fetched",
     OpenCifarSource},
    {"images", "images:DIR",
     "JPEG and PNG files, one folder per class; DIR holds train and test (or val), train, val and "
     "test, seg_train and seg_test, data.train_folder and data.test_folder, or the classes; see "
     "data.size, data.centre",
     OpenImagesSource, true},
    {"pack", "pack:FILE",
     "images in one file, written by trireme data pack; see data.size, data.centre", OpenPackSource,
     true},
    {"synthetic", "synthetic:HxWxC:CLASSES:N",
     "N learnable images generated on the fly, and N / 5 to test", OpenSyntheticSource},
    {kGivenSource, kGivenSource,
     "samples in the memory of a program that trains by the C++ library (docs/library.md); no "
     "command opens them",
     OpenMemorySource},
};

std::pair<std::string, std::string> CutSpec(const std::string& spec) {
  const size_t colon = spec.find(':');
  if (colon == spec.npos) return {spec, ""};
  return {spec.substr(0, colon), spec.substr(colon + 1)};
}

// What may be meant by a path without a word before it; "" if nothing is there.
std::string GuessSource(const std::string& spec) {
  std::error_code ignored;
  const auto type = std::filesystem::status(spec, ignored).type();
  if (type == std::filesystem::file_type::directory) return "images:" + spec;
  if (type != std::filesystem::file_type::regular) return "";
  return (spec.ends_with(".pack") ? "pack:" : "csv:") + spec;
}

const SourceKind& FindKind(const std::string& spec) {
  if (spec.find('\0') != spec.npos) throw UsageError("data.source holds a zero byte");
  const std::string name = CutSpec(spec).first;
  std::string known;
  std::vector<std::string> names;
  for (const SourceKind& kind : kSources) {
    if (name == kind.name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.syntax);
    names.push_back(kind.name);
  }
  const std::string place = GuessSource(spec);
  if (!place.empty()) {
    throw UsageError("data.source = '{}': there is no source '{}'; did you mean {}?", spec, name,
                     place);
  }
  throw UsageError("data.source = '{}': there is no source '{}'; choose from {}{}", spec, name,
                   known, DidYouMean(name, names));
}

void CheckOptions(const DataOptions& options, const SourceKind& kind) {
  const bool csv = kind.open == OpenCsvSource;
  const DataOptions none;
  if (!csv && !(options.label.empty() && options.id.empty() &&
                options.categories == none.categories && options.missing == none.missing)) {
    throw UsageError(
        "data.label, data.id, data.categories and data.missing need csv:FILE, but data.source is "
        "'{}'",
        options.source);
  }
  if (!csv && kind.open != OpenMemorySource && options.task == NameOf(Task::kRegression)) {
    throw UsageError("data.task = regression needs csv:FILE, but data.source is '{}'",
                     options.source);
  }
  if (!kind.cuts &&
      !(options.size == 0 && options.train_folder.empty() && options.validation_folder.empty() &&
        options.test_folder.empty() && options.on_error == "fail")) {
    throw UsageError(
        "data.size, data.train_folder, data.validation_folder, data.test_folder and data.on_error "
        "need images:DIR or pack:FILE, but data.source is '{}'",
        options.source);
  }
  if (options.limit < 0) throw UsageError("data.limit must be at least 0, got {}", options.limit);
  if (options.test_fraction != -1 && !(options.test_fraction > 0 && options.test_fraction < 1)) {
    throw UsageError("data.test_fraction must be more than 0 and less than 1, got {}",
                     options.test_fraction);
  }
  if (!(options.validation_fraction >= 0 && options.validation_fraction < 1)) {
    throw UsageError("data.validation_fraction must be at least 0 and less than 1, got {}",
                     options.validation_fraction);
  }
}

}  // namespace

std::span<const SourceKind> SourceKinds() { return kSources; }

DataSet OpenData(const DataOptions& options, uint64_t seed, const KnownData& known) {
  const SourceKind& kind = FindKind(options.source);
  CheckOptions(options, kind);
  DataSet data = kind.open({options.source, CutSpec(options.source).second, options, known});
  data.name = options.source;
  return DivideData(std::move(data), options, seed);
}

DataSet DivideData(DataSet data, const DataOptions& options, uint64_t seed) {
  CheckOptions(options, FindKind(options.source));
  if (options.folds) {
    if (options.test_fraction != -1) {
      throw UsageError("data.folds and data.test_fraction both say what is held out; set one");
    }
    TakeFold(data, options.folds, options.fold, seed);
  } else if (!data.test) {
    SplitTest(data, options.test_fraction == -1 ? kTestFraction : options.test_fraction, seed);
  } else if (options.test_fraction != -1) {
    throw UsageError("data.test_fraction = {}, but '{}' has a test part of its own",
                     options.test_fraction, options.source);
  }
  SplitValidation(data, options.validation_fraction, seed);
  LimitTraining(data, options.limit, seed);
  return data;
}

DataSet OpenForTest(DataOptions options, const SampleShape& shape, const KnownData& known) {
  const SourceKind& kind = FindKind(options.source);
  const std::string place = CutSpec(options.source).second;
  const DataOptions none;
  if (kind.open != OpenCsvSource) {
    options.label = options.id = "";
    options.categories = none.categories;
    options.missing = none.missing;
  }
  if (kind.cuts) {
    options.size = shape.height;
  } else {
    options.size = none.size;
    options.on_error = none.on_error;
  }
  std::error_code ignored;
  if (kind.open != OpenImagesSource ||
      !std::filesystem::exists(place + "/" + options.test_folder, ignored)) {
    options.train_folder = options.validation_folder = options.test_folder = "";
  }
  DataSet data = kind.open({options.source, place, options, known});
  data.name = options.source;
  if (!data.test) data.test = std::move(data.train);
  return data;
}

bool CutsPictures(const DataOptions& options) { return FindKind(options.source).cuts; }

OwnSize FindOwnSize(const DataOptions& options) {
  DataOptions look = options;
  look.on_error = "fail";  // trying all files takes its time
  try {
    const SourceKind& kind = FindKind(options.source);
    if (!kind.cuts) return {};
    const DataSet data = kind.open({options.source, CutSpec(options.source).second, look, {}});
    return static_cast<const PictureSource&>(*data.train).FindOwnSize();
  } catch (const Error&) {  // told when they are opened to train
    return {};
  }
}

}  // namespace trireme
