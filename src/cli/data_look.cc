// What a pack holds: in numbers, picture by picture, and as a picture.
#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/error.h"
#include "base/files.h"
#include "base/team.h"
#include "base/text.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "data/pack.h"
#include "image/png_writer.h"
#include "image/renderer.h"
#include "record/json.h"

namespace trireme {
namespace {

constexpr Place kFilePlace = {"FILE", Place::kRequired, "a pack written by `trireme data pack`"};
constexpr Place kInfoPlaces[] = {kFilePlace};
constexpr Place kShowPlaces[] = {
    kFilePlace,
    {"NUMBER", Place::kRequired, "number of the image, from 0; the test part comes last"},
    {"OUT", Place::kOptional, "a PNG file to write it to; - is the standard output"}};
constexpr Flag kInfoFlags[] = {{"--json", "", "print JSON"}};
constexpr Flag kVerifyFlags[] = {kThreadsFlag};

// Whether there is something else than a pack under this name. What cannot be read is for Pack.
bool IsNoPack(const std::string& path) {
  std::array<char, PackHead::kMagic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  return file && !(file.read(begin.data(), begin.size()) &&
                   std::string_view(begin.data(), begin.size()) == PackHead::kMagic);
}

// FILE or pack:FILE. People give these commands all kinds of data.
std::string PackPlace(const std::string& given) {
  const size_t colon = Exists(given) ? given.npos : given.find(':');
  const std::string place = colon == given.npos ? given : given.substr(colon + 1);
  if (std::error_code ignored; std::filesystem::is_directory(place, ignored)) {
    throw Error(
        "{}: is a folder, not a pack; make a pack of class folders with: trireme data pack {} FILE",
        place, place);
  }
  if (IsNoPack(place)) {
    throw Error("{}: is not a pack; make one with: trireme data pack DIR FILE", place);
  }
  return place;
}

int Info(const Args& args, Process& process) {
  const Pack pack(PackPlace(args.Required("FILE")));
  const PackHead& head = pack.head();
  const bool pixels = head.kind == PackKind::kPixels;
  if (args.Has("--json")) {
    Json json = Json::Object();
    json.Add("kind", pixels ? "pixels" : "files").Add("train", int64_t(head.train));
    if (head.validation) json.Add("validation", int64_t(head.validation));
    json.Add("test", int64_t(head.test)).Add("bytes", int64_t(pack.bytes()));
    if (pixels) json.Add("size", int64_t{head.side});
    json.Add("classes", pack.classes());
    process.out.Write(json.Text() + "\n");
    return 0;
  }
  process.out.Print(
      "{}: {} images of {} classes ({}), {}, {}\n", pack.path(),
      FormatCount(int64_t(head.pictures())), head.classes,
      PartsText(int64_t(head.train), int64_t(head.validation), int64_t(head.test)),
      FormatBytes(double(pack.bytes())),
      pixels ? fmt::format("decoded, shorter side {} pixels", head.side) : "original files");
  std::vector<int64_t> train(head.classes), validation(head.classes), test(head.classes);
  for (uint64_t i = 0; i < head.pictures(); ++i) {
    auto& part = i < head.train ? train : i < head.train + head.validation ? validation : test;
    ++part[size_t(pack.entry(int64_t(i)).label)];
  }
  for (size_t c = 0; c < train.size(); ++c) {
    process.out.Print("  {}: {}\n", pack.classes()[c], PartsText(train[c], validation[c], test[c]));
  }
  return 0;
}

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

extern const Command kDataInfo, kDataVerify, kDataShow;
const Command kDataInfo = {
    .name = "data info",
    .summary = "print what a pack of images holds",
    .usage = "trireme data info FILE [--json]",
    .examples = "trireme data info photos.pack\n",
    .flags = kInfoFlags,
    .places = kInfoPlaces,
    .run = Info,
};
const Command kDataVerify = {
    .name = "data verify",
    .summary = "check every image of a pack: its checksum, and that it decodes",
    .usage = "trireme data verify FILE [--threads N]",
    .examples = "trireme data verify photos.pack\n",
    .flags = kVerifyFlags,
    .places = kInfoPlaces,
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
