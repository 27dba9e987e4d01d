// PNG by libpng. Its failures come by longjmp: every call stands in Call(), whose frame has nothing
// to destroy.
#include "image/png.h"

#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "image/exif.h"

namespace trireme {
namespace {

constexpr png_uint_32 kMaxSide = 1u << 24;
constexpr png_alloc_size_t kMaxChunk = 8u << 20;  // of what is not pixels

struct Failure {
  char message[200] = "";
};

void Fail(png_structp png, png_const_charp message) {
  auto* failure = static_cast<Failure*>(png_get_error_ptr(png));
  std::strncpy(failure->message, message, sizeof failure->message - 1);
  png_longjmp(png, 1);
}

void Ignore(png_structp, png_const_charp) {}

void ReadBytes(png_structp png, png_bytep out, size_t count) {
  auto* rest = static_cast<std::span<const uint8_t>*>(png_get_io_ptr(png));
  if (rest->size() < count) png_error(png, "the file ends too early");
  std::copy_n(rest->begin(), count, out);
  *rest = rest->subspan(count);
}

class Png : public Decoder {
 public:
  Png(std::span<const uint8_t> bytes, const std::string& name) : name_(name), rest_(bytes) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, &failure_, Fail, Ignore);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    try {
      if (info_ == nullptr) throw Error("{}: out of memory", name_);
      Call([&] { ReadHeader(); });
      CheckPictureSize(png_get_image_width(png_, info_), png_get_image_height(png_, info_), name_);
      Call([&] { AskForRgb(); });
    } catch (...) {
      png_destroy_read_struct(&png_, &info_, nullptr);
      throw;
    }
    stored_ = {static_cast<int>(png_get_image_width(png_, info_)),
               static_cast<int>(png_get_image_height(png_, info_))};
    orientation_ = OrientationOf(ExifOrientation());
  }

  ~Png() override { png_destroy_read_struct(&png_, &info_, nullptr); }

  // All columns are unpacked whether they are asked for or not, and so are the rows above.
  Strip Begin(const Box& box, PictureSize) override {
    const size_t row_bytes = size_t(3) * stored_.width;
    row_ = box.top;
    if (interlaced_) {  // every pass goes over the whole picture
      whole_.resize(row_bytes * stored_.height);
      rows_.resize(stored_.height);
      for (int y = 0; y < stored_.height; ++y) rows_[y] = whole_.data() + y * row_bytes;
      Call([&] { png_read_image(png_, rows_.data()); });
    } else {
      Call([&] {
        for (int y = 0; y < box.top; ++y) png_read_row(png_, nullptr, nullptr);
      });
    }
    return {.width = stored_.width, .top = box.top, .bottom = box.top + box.height};
  }

  void Next(uint8_t* rgb) override {
    if (interlaced_) {
      std::copy_n(rows_[row_++], 3 * stored_.width, rgb);
    } else {
      Call([&] { png_read_row(png_, rgb, nullptr); });
    }
  }

  void Verify() override {
    Begin({0, 0, stored_.width, stored_.height}, stored_);
    if (interlaced_) return;
    Call([&] {
      for (int y = 0; y < stored_.height; ++y) png_read_row(png_, nullptr, nullptr);
    });
  }

 private:
  template <class F>
  void Call(const F& call) {
    if (setjmp(png_jmpbuf(png_)) != 0) Throw();
    call();
  }

  [[noreturn]] void Throw() const { throw Error("{}: {}", name_, failure_.message); }

  void ReadHeader() {
    // Profiles and texts, often large and compressed, are nobody's business here.
    constexpr png_byte kUnread[] = "iCCP\0iTXt\0tEXt\0zTXt";
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, kUnread, 4);
    png_set_user_limits(png_, kMaxSide, kMaxSide);
    png_set_chunk_malloc_max(png_, kMaxChunk);
    png_set_read_fn(png_, &rest_, ReadBytes);
    png_read_info(png_, info_);
  }

  // Transparency is dropped, as by Pillow's convert("RGB"): what lies under it is shown.
  void AskForRgb() {
    png_set_expand(png_);
    png_set_scale_16(png_);
    png_set_strip_alpha(png_);
    png_set_gray_to_rgb(png_);
    interlaced_ = png_set_interlace_handling(png_) > 1;
    png_read_update_info(png_, info_);
    if (png_get_rowbytes(png_, info_) != size_t(3) * png_get_image_width(png_, info_)) {
      png_error(png_, "unknown pixel format");
    }
  }

  int ExifOrientation() {
    png_uint_32 size = 0;
    png_bytep data = nullptr;
    if (png_get_eXIf_1(png_, info_, &size, &data) == 0) return 1;
    return ReadOrientation({data, size});
  }

  const std::string name_;
  Failure failure_;
  std::span<const uint8_t> rest_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  bool interlaced_ = false;
  int row_ = 0;
  std::vector<uint8_t> whole_;  // only of an interlaced picture
  std::vector<uint8_t*> rows_;
};

}  // namespace

std::unique_ptr<Decoder> OpenPng(std::span<const uint8_t> bytes, const std::string& name) {
  return std::make_unique<Png>(bytes, name);
}

}  // namespace trireme
