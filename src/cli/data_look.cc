// The pictures of a pack: whether they are whole, and one of them as a picture.
#include <atomic>
#include <mutex>

#include "base/error.h"
#include "base/files.h"
#include "base/team.h"
#include "base/text.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "cli/pack_place.h"
#include "data/pack.h"
#include "image/png_writer.h"
#include "image/renderer.h"

namespace trireme {
namespace {

constexpr Place kFilePlace = {"FILE", Place::kRequired, "a pack written by `trireme data pack`"};
constexpr Place kVerifyPlaces[] = {kFilePlace};
constexpr Place kShowPlaces[] = {
    kFilePlace,
    {"NUMBER", Place::kRequired, "number of the image, from 0; the test part comes last"},
    {"OUT", Place::kOptional, "a PNG file to write it to; - is the standard output"}};
constexpr Flag kVerifyFlags[] = {kThreadsFlag};

int Verify(const Args& args, Process& process) {
  const Pack pack(PackPlace(args.Required("FILE")));
  const auto pictures = int64_t(pack.head().pictures());
  std::atomic<int64_t> next = 0, wrong = 0;
  std::mutex mutex;  // of the output
  Team team(ThreadsOf(args));
  team.Run([&](int) {
    for (int64_t i = next++; i < pictures; i = next++) {
      const std::string message = pack.Check(i);
      if (message.empty()) continue;
      ++wrong;
      const std::lock_guard lock(mutex);
      process.out.Write(message + "\n");
    }
  });
  process.out.Print("{}: {} of {} images are damaged\n", pack.path(), wrong.load(), pictures);
  return wrong > 0 ? 1 : 0;
}

int Show(const Args& args, Process& process) {
  const Pack pack(PackPlace(args.Required("FILE")));
  const auto number = ParseNumber<int64_t>(args.Required("NUMBER"));
  const auto pictures = int64_t(pack.head().pictures());
  if (!number || *number < 0 || *number >= pictures) {
    throw UsageError("NUMBER must be between 0 and {}, got {}", pictures - 1,
                     args.Required("NUMBER"));
  }
  const auto picture = pack.Open(*number);
  const PictureSize size = picture->size();
  const PackEntry entry = pack.entry(*number);
  const auto out = args.Optional("OUT");
  const bool to_output = out && process.out.Is(*out);
  if (!to_output) {
    process.out.Print("{} {} {} x {}, {}, {}\n", *number, pack.name(*number), size.width,
                      size.height, FormatBytes(double(entry.bytes)),
                      pack.classes()[size_t(entry.label)]);
  }
  if (out) {
    std::vector<uint8_t> rgb(size_t(3) * size.width * size.height);
    Renderer().Draw(*picture, {{0, 0, size.width, size.height}}, size, rgb.data());
    const std::string png = EncodePng(rgb.data(), size);
    to_output ? process.out.Write(png) : ReplaceFile(*out, png);
  }
  return 0;
}

}  // namespace

extern const Command kDataVerify, kDataShow;
const Command kDataVerify = {
    .name = "data verify",
    .summary = "check every image of a pack: its checksum, and that it decodes",
    .usage = "trireme data verify FILE [--threads N]",
    .examples = "trireme data verify photos.pack\n",
    .flags = kVerifyFlags,
    .places = kVerifyPlaces,
    .run = Verify,
};
const Command kDataShow = {
    .name = "data show",
    .summary = "show one image of a pack",
    .usage = "trireme data show FILE NUMBER [OUT.png]",
    .examples =
        "trireme data show photos.pack 17            # its name, size and class\n"
        "trireme data show photos.pack 17 it.png     # also as a PNG file\n",
    .places = kShowPlaces,
    .run = Show,
};

}  // namespace trireme
