// JPEG by libjpeg-turbo. Its failures come by longjmp: every call stands in Call(), whose frame has
// nothing to destroy.
#include "image/jpeg.h"

#include <algorithm>
#include <csetjmp>
#include <utility>
#include <vector>
// clang-format off
#include <cstdio>
#include <jpeglib.h>
#include <jerror.h>
// clang-format on

#include "base/error.h"
#include "image/exif.h"

namespace trireme {
namespace {

// More scans than any encoder writes: each costs a pass over the picture (a known attack).
constexpr int kMaxScans = 200;
constexpr unsigned kExifBytes = 0xffff;
constexpr char kExifMark[] = {'E', 'x', 'i', 'f', 0, 0};

struct Failures {
  jpeg_error_mgr base;  // first: libjpeg hands it back
  std::jmp_buf jump;
  char message[JMSG_LENGTH_MAX];
};

Failures& FailuresOf(j_common_ptr info) { return *reinterpret_cast<Failures*>(info->err); }

[[noreturn]] void Fail(j_common_ptr info) {
  Failures& failures = FailuresOf(info);
  failures.base.format_message(info, failures.message);
  std::longjmp(failures.jump, 1);
}

// libjpeg goes on with grey where data is missing or broken; what it says of other oddities (bytes
// between markers, versions it does not know) is of no consequence.
void Emit(j_common_ptr info, int level) {
  if (level >= 0) return;
  const int code = info->err->msg_code;
  if (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
      code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC || code == JWRN_BOGUS_PROGRESSION) {
    Fail(info);
  }
}

void WatchScans(j_common_ptr info) {
  if (!info->is_decompressor) return;
  const auto* decompress = reinterpret_cast<j_decompress_ptr>(info);
  if (decompress->input_scan_number > kMaxScans) {
    Failures& failures = FailuresOf(info);
    std::snprintf(failures.message, sizeof failures.message, "more than %d scans", kMaxScans);
    std::longjmp(failures.jump, 1);
  }
}

class Jpeg : public Decoder {
 public:
  Jpeg(std::span<const uint8_t> bytes, const std::string& name) : name_(name) {
    info_.err = jpeg_std_error(&failures_.base);
    failures_.base.error_exit = Fail;
    failures_.base.emit_message = Emit;
    progress_.progress_monitor = WatchScans;
    try {
      Call([&] {
        jpeg_create_decompress(&info_);
        info_.progress = &progress_;
        jpeg_mem_src(&info_, bytes.data(), bytes.size());
        jpeg_save_markers(&info_, JPEG_APP0 + 1, kExifBytes);
        jpeg_read_header(&info_, TRUE);
      });
      CheckPictureSize(info_.image_width, info_.image_height, name_);
    } catch (...) {
      jpeg_destroy_decompress(&info_);
      throw;
    }
    stored_ = {static_cast<int>(info_.image_width), static_cast<int>(info_.image_height)};
    orientation_ = OrientationOf(ExifOrientation());
  }

  ~Jpeg() override { jpeg_destroy_decompress(&info_); }

  Strip Begin(const Box& box, PictureSize least) override {
    SetColours();
    strip_ = {.eighths = Eighths(box, least)};
    info_.scale_num = static_cast<unsigned>(strip_.eighths);
    info_.scale_denom = 8;
    Call([&] { jpeg_start_decompress(&info_); });
    const auto width = static_cast<int>(info_.output_width);
    const auto height = static_cast<int>(info_.output_height);
    const int left = box.left * strip_.eighths / 8;
    const int right = std::min(width, Ceiling(box.left + box.width));
    strip_.top = std::min(height - 1, box.top * strip_.eighths / 8);
    strip_.bottom = std::min(height, Ceiling(box.top + box.height));
    auto crop_left = static_cast<JDIMENSION>(std::min(left, width - 1));
    auto crop_width = static_cast<JDIMENSION>(std::max(right - static_cast<int>(crop_left), 1));
    Call([&] {
      if (crop_left > 0 || static_cast<int>(crop_width) < width) {
        jpeg_crop_scanline(&info_, &crop_left, &crop_width);
      }
      if (strip_.top > 0) jpeg_skip_scanlines(&info_, static_cast<JDIMENSION>(strip_.top));
    });
    strip_.left = static_cast<int>(crop_left);
    strip_.width = static_cast<int>(info_.output_width);
    if (cmyk_) row_.resize(size_t(4) * strip_.width);
    return strip_;
  }

  void Next(uint8_t* rgb) override {
    JSAMPROW row = cmyk_ ? row_.data() : rgb;
    Call([&] { jpeg_read_scanlines(&info_, &row, 1); });
    if (!cmyk_) return;
    for (int x = 0; x < strip_.width; ++x) {  // Adobe's, the only ones there are: 255 is no ink
      const uint8_t* ink = row_.data() + 4 * x;
      for (int c = 0; c < 3; ++c) rgb[3 * x + c] = static_cast<uint8_t>(ink[c] * ink[3] / 255);
    }
  }

  // Everything is unpacked, almost nothing transformed. (All rows at once would skip the reading.)
  void Verify() override {
    const Strip last = Begin({0, stored_.height - 1, stored_.width, 1}, stored_);
    std::vector<uint8_t> row(size_t(3) * last.width);
    Next(row.data());
  }

 private:
  template <class F>
  void Call(const F& call) {
    if (setjmp(failures_.jump) != 0) Throw();
    call();
  }

  [[noreturn]] void Throw() const { throw Error("{}: {}", name_, failures_.message); }

  int ExifOrientation() const {
    for (auto* marker = info_.marker_list; marker != nullptr; marker = marker->next) {
      const std::span<const uint8_t> data(marker->data, marker->data_length);
      if (data.size() >= sizeof kExifMark &&
          std::equal(std::begin(kExifMark), std::end(kExifMark), data.begin())) {
        return ReadOrientation(data.subspan(sizeof kExifMark));
      }
    }
    return 1;
  }

  void SetColours() {
    cmyk_ = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    info_.out_color_space = cmyk_ ? JCS_CMYK : JCS_RGB;
  }

  int Ceiling(int pixels) const { return (pixels * strip_.eighths + 7) / 8; }

  // Halves only: their transforms are vectorised. Twice what is needed must be left, because they
  // blur less than the filter behind them.
  static int Eighths(const Box& box, PictureSize least) {
    int eighths = 8;
    while (eighths > 1 && box.width * eighths / 16 >= 2 * least.width &&
           box.height * eighths / 16 >= 2 * least.height) {
      eighths /= 2;
    }
    return eighths;
  }

  const std::string name_;
  Failures failures_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct info_{};
  Strip strip_;
  bool cmyk_ = false;
  std::vector<uint8_t> row_;
};

}  // namespace

std::unique_ptr<Decoder> OpenJpeg(std::span<const uint8_t> bytes, const std::string& name) {
  return std::make_unique<Jpeg>(bytes, name);
}

}  // namespace trireme
