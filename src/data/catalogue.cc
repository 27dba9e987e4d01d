#include "data/catalogue.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr OfferedFile kMnistFiles[] = {
    {"train-images-idx3-ubyte.gz", 9912422,
     "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
     "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"},
    {"train-labels-idx1-ubyte.gz", 28881,
     "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
     "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"},
    {"t10k-images-idx3-ubyte.gz", 1648877,
     "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
     "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"},
    {"t10k-labels-idx1-ubyte.gz", 4542,
     "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
     "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"},
};
constexpr std::string_view kMnistMirrors[] = {
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "http://yann.lecun.com/exdb/mnist/",
};

constexpr OfferedFile kFashionFiles[] = {
    {"train-images-idx3-ubyte.gz", 26421880,
     "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
     "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"},
    {"train-labels-idx1-ubyte.gz", 29515,
     "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
     "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"},
    {"t10k-images-idx3-ubyte.gz", 4422102,
     "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
     "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"},
    {"t10k-labels-idx1-ubyte.gz", 5148,
     "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
     "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"},
};
constexpr std::string_view kFashionMirrors[] = {
    "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    "https://storage.googleapis.com/tensorflow/tf-keras-datasets/",
    "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
};

constexpr OfferedFile kCifarFiles[] = {
    {"cifar-10-binary.tar.gz", 170052171,
     "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd", ""}};
constexpr std::string_view kCifarMirrors[] = {
    "https://www.cs.toronto.edu/~kriz/",
    "https://storage.googleapis.com/s4tf-hosted-binaries/datasets/CIFAR10/",
};

constexpr OfferedFile kImagenette160Files[] = {
    {"imagenette2-160.tgz", 99003388,
     "64d0c4859f35a461889e0147755a999a48b49bf38a7e0f9bd27003f10db02fe5", ""}};
constexpr OfferedFile kImagenette320Files[] = {
    {"imagenette2-320.tgz", 341663724,
     "569b4497c98db6dd29f335d1f109cf315fe127053cedf69010d047f0188e158c", ""}};
constexpr std::string_view kImagenetteMirrors[] = {
    "https://s3.amazonaws.com/fast-ai-imageclas/",
    "https://fast-ai-imageclas.s3.amazonaws.com/",
};

constexpr std::string_view kScenesNames[] = {"seg_test", "seg_train"};
constexpr OfferedFolders kScenes = {
    "\"Intel Image Classification\" (puneet6060) at kaggle.com, with an account", kScenesNames,
    17034, 258258913, "c2dfae7d3c5c74962b023f8e71344171736cfda60f97d2b9a079f0454fe3ee55"};

constexpr OfferedData kOffered[] = {
    {"mnist", "handwritten digits, 28 x 28, 11 MiB", kMnistFiles, kMnistMirrors, "", "mnist"},
    {"fashion-mnist", "clothing, 28 x 28, 30 MiB", kFashionFiles, kFashionMirrors, "",
     "fashion-mnist"},
    {"cifar10", "ten classes of photos, 32 x 32, 162 MiB", kCifarFiles, kCifarMirrors,
     "cifar-10-batches-bin", "cifar10"},
    {"imagenette-160", "ten classes of ImageNet, the shorter side 160, 94 MiB", kImagenette160Files,
     kImagenetteMirrors, "imagenette2-160", "images:"},
    {"imagenette-320", "the same, the shorter side 320, 326 MiB", kImagenette320Files,
     kImagenetteMirrors, "imagenette2-320", "images:"},
    {"intel-scenes",
     "six classes of landscapes, 150 x 150, 246 MiB; fetched by hand, taken with --from",
     {},
     {},
     "",
     "images:",
     &kScenes},
};

}  // namespace

std::span<const OfferedData> OfferedDataSets() { return kOffered; }

const OfferedData& FindOffered(std::string_view name) {
  std::vector<std::string> names;
  for (const OfferedData& offered : kOffered) {
    if (offered.name == name) return offered;
    names.emplace_back(offered.name);
  }
  throw UsageError("there is no data set \"{}\" to fetch{}; it is one of {}", name,
                   DidYouMean(name, names), fmt::join(names, ", "));
}

std::string DataHome(FunctionRef<const char*(const char*)> variable) {
  const auto text = [&](const char* name) -> std::string {
    const char* value = variable(name);
    return value != nullptr ? value : "";
  };
  if (const std::string own = text("TRIREME_DATA"); !own.empty()) return own;
  if (const std::string cache = text("XDG_CACHE_HOME"); cache.starts_with('/')) {
    return cache + "/trireme";
  }
  const std::string home = text("HOME");
  return home.empty() ? "" : home + "/.cache/trireme";
}

std::string FetchedFolder(std::string_view name) {
  const std::string home = DataHome([](const char* n) -> const char* { return std::getenv(n); });
  if (home.empty()) return "";
  std::string folder = fmt::format("{}/{}", home, name);
  std::error_code none;
  return std::filesystem::is_directory(folder, none) ? folder : "";
}

}  // namespace trireme
