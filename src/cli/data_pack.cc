// Class folders of pictures become one file.
#include "base/text.h"
#include "cli/command.h"
#include "data/pack.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--size", "N",
     "decode and resize so that the shorter side has N pixels (default: keep files as they are)"},
    {"--on-error", "HOW",
     "what to do with a file that does not decode: skip or fail (default: fail)", "data.on_error"},
    {"--train", "NAME", "the folder of the training part, if it is not train or seg_train",
     "data.train_folder"},
    {"--validation", "NAME",
     "the folder of the validation part, if it is not val next to train and test",
     "data.validation_folder"},
    {"--test", "NAME", "the folder of the test part, if it is not test, seg_test or val",
     "data.test_folder"},
};
constexpr Place kPlaces[] = {
    {"DIR", Place::kRequired, "as for images:DIR: a folder for each class, with or without parts"},
    {"FILE", Place::kRequired, "the pack; an existing file is replaced when all is written"}};

int Run(const Args& args, Process& process) {
  DataOptions options;
  Sections sections;
  sections.Add("data", options);
  args.ApplyTo(sections);
  const int side = args.Number("--size", 0);
  if (args.Has("--size") && (side < 1 || side > 4096)) {
    throw UsageError("--size must be between 1 and 4096, got {}", side);
  }
  if (process.out.Is(args.Required("FILE"))) {
    throw UsageError(
        "a pack cannot be written to the standard output ({}): its header is written last; name a "
        "file",
        args.Required("FILE"));
  }
  const PackReport report = WritePack(args.Required("DIR"), options, side, args.Required("FILE"));
  const Log log(process.log);
  for (const std::string& message : report.left_out) log.Warn("data", "left out: {}", message);
  process.out.Print("{}: {} images ({}), {} left out, {}\n", args.Required("FILE"),
                    FormatCount(report.train + report.validation + report.test),
                    PartsText(report.train, report.validation, report.test), report.left_out.size(),
                    FormatBytes(double(report.bytes)));
  return 0;
}

}  // namespace

extern const Command kDataPack;
const Command kDataPack = {
    .name = "data pack",
    .summary = "write class folders of images into one file",
    .usage = "trireme data pack DIR FILE [--size N] [--on-error skip]",
    .examples =
        "trireme data pack photos photos.pack              # the files as they are\n"
        "trireme data pack photos photos.pack --size 256   # decoded: larger, much faster\n"
        "trireme train --model resnet18 --data pack:photos.pack\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
