#include "image/jpeg.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "image/renderer.h"
#include "image/testing.h"

namespace trireme {
namespace {

RgbPicture Decode(const std::string& bytes, const Box& box, PictureSize size) {
  RgbPicture result{size, std::vector<uint8_t>(size_t(3) * size.width * size.height)};
  const auto picture = OpenPicture(BytesOf(bytes), "a.jpg");
  Renderer().Draw(*picture, {box}, size, result.rgb.data());
  return result;
}

RgbPicture DecodeAll(const std::string& bytes) {
  const PictureSize size = OpenPicture(BytesOf(bytes), "a.jpg")->size();
  return Decode(bytes, {0, 0, size.width, size.height}, size);
}

int LargestDifference(const RgbPicture& a, const RgbPicture& b) {
  EXPECT_EQ(a.size, b.size);
  int largest = 0;
  for (size_t i = 0; i < a.rgb.size(); ++i)
    largest = std::max(largest, std::abs(a.rgb[i] - b.rgb[i]));
  return largest;
}

JpegSetting Sampling(int h, int v) {
  return [=](jpeg_compress_struct& info) {
    info.comp_info[0].h_samp_factor = h;
    info.comp_info[0].v_samp_factor = v;
  };
}

struct Kind {
  const char* name;
  JpegSetting set;
};

std::vector<Kind> Kinds() {
  return {{"4:4:4", Sampling(1, 1)},
          {"4:2:2", Sampling(2, 1)},
          {"4:4:0", Sampling(1, 2)},
          {"4:2:0", Sampling(2, 2)},
          {"progressive", [](jpeg_compress_struct& info) { jpeg_simple_progression(&info); }},
          {"restarts", [](jpeg_compress_struct& info) { info.restart_interval = 3; }},
          {"rgb", [](jpeg_compress_struct& info) { jpeg_set_colorspace(&info, JCS_RGB); }}};
}

TEST(Jpeg, KindsDecodeToThePicture) {
  const RgbPicture picture = SmoothPicture(117, 83);
  for (const Kind& kind : Kinds()) {
    const std::string bytes = MakeJpeg(picture, kind.set);
    EXPECT_LE(LargestDifference(DecodeAll(bytes), picture), 8) << kind.name;
    OpenPicture(BytesOf(bytes), "a.jpg")->Verify();
  }
}

TEST(Jpeg, APartIsThePartOfTheWhole) {
  const RgbPicture picture = SmoothPicture(317, 183);
  for (const Kind& kind : Kinds()) {
    const std::string bytes = MakeJpeg(picture, kind.set);
    const RgbPicture whole = DecodeAll(bytes);
    for (const Box& box : {Box{0, 0, 317, 183}, Box{33, 17, 100, 50}, Box{200, 100, 117, 83},
                           Box{316, 182, 1, 1}, Box{15, 31, 17, 1}}) {
      const RgbPicture part = Decode(bytes, box, {box.width, box.height});
      RgbPicture expected = part;
      for (int y = 0; y < box.height; ++y) {
        for (int x = 0; x < box.width; ++x) {
          std::copy_n(whole.at(box.left + x, box.top + y), 3,
                      expected.rgb.data() + 3 * (y * box.width + x));
        }
      }
      EXPECT_LE(LargestDifference(part, expected), 4) << kind.name << " " << box.left;
    }
  }
}

TEST(Jpeg, DetailThatIsNotNeededIsNotDecoded) {
  const RgbPicture picture = SmoothPicture(640, 480);
  const std::string bytes = MakeJpeg(picture);
  const auto eighths = [&](const Box& box, PictureSize size) {
    return OpenPicture(BytesOf(bytes), "a.jpg")->Begin(box, size).eighths;
  };
  const Box all = {0, 0, 640, 480};
  EXPECT_EQ(eighths(all, {640, 480}), 8);
  EXPECT_EQ(eighths(all, {224, 224}), 8);
  EXPECT_EQ(eighths(all, {160, 120}), 4);
  EXPECT_EQ(eighths(all, {32, 30}), 1);
  for (const PictureSize size : {PictureSize{100, 100}, PictureSize{31, 40}, PictureSize{7, 3}}) {
    for (const Box& box : {all, Box{101, 53, 470, 390}}) {
      const RgbPicture part = Decode(bytes, box, size);
      for (int y = 0; y < size.height; ++y) {
        for (int x = 0; x < size.width; ++x) {
          const int u = box.left + (2 * x + 1) * box.width / (2 * size.width);
          const int v = box.top + (2 * y + 1) * box.height / (2 * size.height);
          for (int c = 0; c < 3; ++c) EXPECT_NEAR(part.at(x, y)[c], picture.at(u, v)[c], 8);
        }
      }
    }
  }
}

TEST(Jpeg, GreyHasThreeEqualChannels) {
  const RgbPicture picture = SmoothPicture(64, 48);
  const std::string bytes = MakeJpeg(picture, [](jpeg_compress_struct& info) {
    info.input_components = 1;
    info.in_color_space = JCS_GRAYSCALE;
    jpeg_set_defaults(&info);
  });
  const RgbPicture decoded = DecodeAll(bytes);
  for (int y = 0; y < 48; ++y) {
    for (int x = 0; x < 64; ++x) {
      EXPECT_NEAR(decoded.at(x, y)[0], picture.at(x, y)[0], 6);
      EXPECT_EQ(decoded.at(x, y)[0], decoded.at(x, y)[1]);
      EXPECT_EQ(decoded.at(x, y)[0], decoded.at(x, y)[2]);
    }
  }
}

TEST(Jpeg, InksBecomeColours) {
  const RgbPicture picture = SmoothPicture(64, 48);
  for (const J_COLOR_SPACE space : {JCS_CMYK, JCS_YCCK}) {
    const std::string bytes = MakeJpeg(picture, [=](jpeg_compress_struct& info) {
      info.input_components = 4;
      info.in_color_space = JCS_CMYK;
      jpeg_set_defaults(&info);
      jpeg_set_quality(&info, 95, TRUE);
      jpeg_set_colorspace(&info, space);
    });
    EXPECT_LE(LargestDifference(DecodeAll(bytes), picture), 10);
  }
}

TEST(Jpeg, OrientationIsRead) {
  const RgbPicture picture = SmoothPicture(32, 16);
  for (int exif = 1; exif <= 8; ++exif) {
    const std::string bytes = MakeJpeg(picture, {}, exif);
    const auto decoder = OpenPicture(BytesOf(bytes), "a.jpg");
    EXPECT_EQ(decoder->orientation(), OrientationOf(exif));
    EXPECT_EQ(decoder->size(), exif < 5 ? PictureSize({32, 16}) : PictureSize({16, 32}));
  }
}

std::string Refused(const std::string& bytes) {
  try {
    DecodeAll(bytes);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Jpeg, ACutFileIsRefusedWithItsName) {
  for (const Kind& kind : Kinds()) {
    const std::string bytes = MakeJpeg(SmoothPicture(117, 83), kind.set);
    for (const size_t length : {size_t(4), size_t(100), bytes.size() / 2, bytes.size() - 20}) {
      EXPECT_TRUE(Refused(bytes.substr(0, length)).starts_with("a.jpg: ")) << kind.name << length;
      EXPECT_THROW(OpenPicture(BytesOf(bytes.substr(0, length)), "a.jpg")->Verify(), Error);
    }
  }
}

TEST(Jpeg, MoreThanTheLimitIsRefusedBeforeMemoryIsTaken) {
  std::string bytes = MakeJpeg(SmoothPicture(16, 16));
  const size_t frame = bytes.find("\xff\xc0");
  ASSERT_NE(frame, bytes.npos);
  for (size_t i = 5; i < 9; ++i) bytes[frame + i] = '\xf0';  // 61,680 x 61,680
  EXPECT_NE(Refused(bytes).find("61680 x 61680 pixels, more than"), std::string::npos);
}

}  // namespace
}  // namespace trireme
