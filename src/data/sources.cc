#include "data/sources.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "data/bytes.h"
#include "data/cifar.h"
#include "data/csv_source.h"
#include "data/folds.h"
#include "data/idx.h"
#include "data/images.h"
#include "data/iris.h"
#include "data/order.h"
#include "data/pack.h"
#include "data/synthetic.h"

namespace trireme {
namespace {

constexpr double kTestFraction = 0.2;
constexpr const char* kFashionFolder = "/usr/share/datasets/fashion-mnist";
constexpr uint64_t kSplitStream = 0x73706c6974;  // other random numbers than the epochs' order
constexpr uint64_t kValidationStream = 0x76616c6964;
constexpr uint64_t kLimitStream = 0x6c696d6974;

const std::string& RequireArgument(const SourceRequest& request, const char* syntax) {
  if (request.argument.empty()) {
    throw UsageError("data.source = '{}' lacks its place, expected {}", request.spec, syntax);
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
    throw UsageError("data.source = '{}': iris is built in and takes no file; csv:FILE reads one",
                     request.spec);
  }
  return OpenIris();
}

DataSet OpenCsvSource(const SourceRequest& request) {
  return OpenCsv(RequireArgument(request, "csv:FILE"), request.options, request.classes);
}

DataSet OpenIdxSource(const SourceRequest& request) {
  return OpenIdxFolder(RequireFolderArgument(request, "idx:DIR"), {});
}

DataSet OpenMnistSource(const SourceRequest& request) {
  return OpenIdxFolder(RequireFolderArgument(request, "mnist:DIR"),
                       {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"});
}

DataSet OpenFashionSource(const SourceRequest& request) {
  std::string folder = request.argument;
  if (folder.empty()) {
    folder = kFashionFolder;
    std::error_code ignored;
    if (!std::filesystem::exists(folder, ignored)) {
      throw Error(
          "no {}: install the Debian package dataset-fashion-mnist, or name the folder of the four "
          "files: fashion-mnist:DIR",
          folder);
    }
  }
  RequireFolder(folder, request.spec);
  return OpenIdxFolder(folder, {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal",
                                "Shirt", "Sneaker", "Bag", "Ankle boot"});
}

DataSet OpenCifarSource(const SourceRequest& request) {
  return OpenCifarFolder(RequireFolderArgument(request, "cifar10:DIR"));
}

DataSet OpenImagesSource(const SourceRequest& request) {
  return OpenImages(RequireFolderArgument(request, "images:DIR"), request.options, request.classes);
}

DataSet OpenPackSource(const SourceRequest& request) {
  return OpenPack(RequireArgument(request, "pack:FILE"), request.options, request.classes);
}

DataSet OpenSyntheticSource(const SourceRequest& request) {
  return OpenSynthetic(RequireArgument(request, "synthetic:HxWxC:CLASSES:N"));
}

constexpr SourceKind kSources[] = {
    {"iris", "iris", "Fisher's 150 flowers, 4 numbers, 3 classes; built in", OpenIrisSource},
    {"csv", "csv:FILE[,[VALIDATION,]TEST]",
     "numbers and a label per line, plain or .gz; one file, or one for each part; data.label and "
     "data.id choose columns",
     OpenCsvSource},
    {"idx", "idx:DIR",
     "pictures in the format of MNIST: train-images-idx3-ubyte (or idx4), train-labels-idx1-ubyte, "
     "t10k-*; plain or .gz",
     OpenIdxSource},
    {"mnist", "mnist:DIR", "handwritten digits, the four idx files", OpenMnistSource},
    {"fashion-mnist", "fashion-mnist[:DIR]",
     "clothes, the four idx files; without DIR those of Debian's dataset-fashion-mnist",
     OpenFashionSource},
    {"cifar10", "cifar10:DIR", "the binary version: data_batch*.bin, test_batch*.bin; plain or .gz",
     OpenCifarSource},
    {"images", "images:DIR",
     "JPEG and PNG files in a folder for each class; DIR holds train and test (or val), train, val "
     "and test, seg_train and seg_test, data.train_folder and data.test_folder, or the classes; "
     "data.size, data.centre",
     OpenImagesSource},
    {"pack", "pack:FILE", "pictures in one file, made by trireme data pack; data.size, data.centre",
     OpenPackSource},
    {"synthetic", "synthetic:HxWxC:CLASSES:N",
     "N pictures made on the fly that can be learned, and N / 5 to test", OpenSyntheticSource},
};

std::pair<std::string, std::string> CutSpec(const std::string& spec) {
  const size_t colon = spec.find(':');
  if (colon == spec.npos) return {spec, ""};
  return {spec.substr(0, colon), spec.substr(colon + 1)};
}

const SourceKind& FindKind(const std::string& spec) {
  if (spec.find('\0') != spec.npos) throw UsageError("data.source holds a zero byte");
  const std::string name = CutSpec(spec).first;
  std::string known;
  for (const SourceKind& kind : kSources) {
    if (name == kind.name) return kind;
    known += (known.empty() ? "" : ", ") + std::string(kind.syntax);
  }
  throw UsageError("data.source = '{}': there is no source '{}'; known are {}", spec, name, known);
}

void CheckOptions(const DataOptions& options, const SourceKind& kind) {
  const bool csv = kind.open == OpenCsvSource;
  if (!csv && !(options.label.empty() && options.id.empty())) {
    throw UsageError("data.label and data.id choose columns of csv:FILE; data.source is '{}'",
                     options.source);
  }
  if (kind.open != OpenImagesSource && kind.open != OpenPackSource &&
      !(options.size == 0 && options.train_folder.empty() && options.validation_folder.empty() &&
        options.test_folder.empty() && options.on_error == "fail")) {
    throw UsageError(
        "data.size, data.train_folder, data.validation_folder, data.test_folder and data.on_error "
        "are for images:DIR and pack:FILE; data.source is '{}'",
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

// The samples at some positions of a keyed permutation, ascending.
std::vector<int64_t> Choose(uint64_t key, int64_t size, int64_t begin, int64_t end) {
  std::vector<int64_t> chosen(static_cast<size_t>(end - begin));
  Order(key, size, true).Fill(0, begin, chosen);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

// Some samples of a part, at random, and those that are left.
struct Halves {
  std::unique_ptr<Source> held_out, rest;
};

Halves HoldOut(std::unique_ptr<Source> part, double fraction, uint64_t key) {
  const std::shared_ptr<const Source> whole = std::move(part);
  const auto wanted =
      static_cast<int64_t>(std::llround(fraction * static_cast<double>(whole->size())));
  const int64_t num_held = std::clamp<int64_t>(wanted, 1, whole->size() - 1);
  return {std::make_unique<Subset>(whole, Choose(key, whole->size(), 0, num_held)),
          std::make_unique<Subset>(whole, Choose(key, whole->size(), num_held, whole->size()))};
}

void Split(DataSet& data, double fraction, uint64_t seed) {
  if (data.train->size() < 2) {
    throw Error("{}: {} sample, too few to hold some out for the test", data.name,
                data.train->size());
  }
  Halves halves = HoldOut(std::move(data.train), fraction, Hash(seed, kSplitStream));
  data.test = std::move(halves.held_out);
  data.train = std::move(halves.rest);
}

// After the test part is known, and before the limit: neither of them depends on it.
void SplitValidation(DataSet& data, double fraction, uint64_t seed) {
  if (fraction == 0) return;
  if (data.validation) {
    throw UsageError("data.validation_fraction = {}, but '{}' has a validation part of its own",
                     fraction, data.name);
  }
  if (data.train->size() < 2) {
    throw Error("{}: {} training sample, too few to hold some out for validation", data.name,
                data.train->size());
  }
  Halves halves = HoldOut(std::move(data.train), fraction, Hash(seed, kValidationStream));
  data.validation = std::move(halves.held_out);
  data.train = std::move(halves.rest);
}

void Limit(DataSet& data, int64_t limit, uint64_t seed) {
  if (limit == 0 || limit >= data.train->size()) return;
  const std::shared_ptr<const Source> whole = std::move(data.train);
  data.train =
      std::make_unique<Subset>(whole, Choose(Hash(seed, kLimitStream), whole->size(), 0, limit));
}

}  // namespace

std::span<const SourceKind> SourceKinds() { return kSources; }

DataSet OpenData(const DataOptions& options, uint64_t seed, std::span<const std::string> classes) {
  const SourceKind& kind = FindKind(options.source);
  CheckOptions(options, kind);
  DataSet data = kind.open({options.source, CutSpec(options.source).second, options, classes});
  data.name = options.source;
  if (options.folds) {
    if (options.test_fraction != -1) {
      throw UsageError("data.folds and data.test_fraction both say what is held out; set one");
    }
    TakeFold(data, options.folds, options.fold, seed);
  } else if (!data.test) {
    Split(data, options.test_fraction == -1 ? kTestFraction : options.test_fraction, seed);
  } else if (options.test_fraction != -1) {
    throw UsageError("data.test_fraction = {}, but '{}' has a test part of its own",
                     options.test_fraction, options.source);
  }
  SplitValidation(data, options.validation_fraction, seed);
  Limit(data, options.limit, seed);
  return data;
}

}  // namespace trireme
