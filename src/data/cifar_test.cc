#include "data/cifar.h"

#include "data/testing.h"

namespace trireme {
namespace {

TEST(Cifar, ReadsAllBatchesInOrderWithChannelsLast) {
  const TemporaryFolder folder;
  std::string second = CifarRecords(2);
  second[0] = 7;
  folder.Write("data_batch_2.bin.gz", Gzip(second));
  folder.Write("data_batch_1.bin", CifarRecords(3));
  folder.Write("data_batch_1.bin.gz", Gzip(CifarRecords(9)));  // the plain file is taken
  folder.Write("test_batch.bin", CifarRecords(1));
  folder.Write("batches.meta.txt", "a\r\nb\nc\nd\ne\nf\ng\nh\ni\nj\n\n");
  const DataSet data = OpenCifarFolder(folder.path());
  EXPECT_EQ(data.shape, (SampleShape{32, 32, 3}));
  EXPECT_EQ(data.classes,
            (std::vector<std::string>{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}));
  ASSERT_EQ(data.train->size(), 5);
  EXPECT_EQ(data.test->size(), 1);
  EXPECT_EQ(data.train->label(2), 2);
  EXPECT_EQ(data.train->label(3), 7);
  std::vector<float> sample(3072);
  data.train->Read(4, sample);
  for (int pixel = 0; pixel < 1024; ++pixel) {
    for (int c = 0; c < 3; ++c) {
      const auto byte = static_cast<uint8_t>(37 * (1024 * c + pixel));
      ASSERT_NEAR(sample[3 * pixel + c], byte / 255.0, 1e-7);
    }
  }
}

TEST(Cifar, NamesClassesByNumberWithoutMeta) {
  const TemporaryFolder folder;
  folder.Write("data_batch_1.bin", CifarRecords(1));
  const DataSet data = OpenCifarFolder(folder.path());
  EXPECT_EQ(data.classes[9], "9");
  EXPECT_EQ(data.test, nullptr);
}

TEST(Cifar, RefusesBrokenFilesWithPlaceAndReason) {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& content) {
    folder.Write("data_batch_1.bin", content);
    return Refusal([&] { OpenCifarFolder(folder.path()); });
  };
  EXPECT_TRUE(Holds(refused(""), {"data_batch_1.bin", "empty"}));
  EXPECT_TRUE(
      Holds(refused(CifarRecords(2).substr(1)), {"data_batch_1.bin: 6145 bytes", "record 1"}));
  EXPECT_TRUE(Holds(refused(CifarRecords(2) + "x"), {"6147 bytes", "3073", "record 2"}));
  std::string wrong = CifarRecords(3);
  wrong[2 * 3073] = 10;
  EXPECT_TRUE(Holds(refused(wrong), {"label 10 of record 2 (byte 6146)", "10 classes"}));
  EXPECT_TRUE(Holds(refused(Gzip(CifarRecords(3)).substr(0, 60)), {"ends too early, at byte 60"}));
  folder.Write("batches.meta.txt", "cat\ndog\n");
  EXPECT_TRUE(Holds(refused(CifarRecords(1)), {"batches.meta.txt", "2 class names", "10"}));
  const TemporaryFolder nothing;
  EXPECT_TRUE(Holds(Refusal([&] { OpenCifarFolder(nothing.path()); }),
                    {nothing.path(), "no data_batch*.bin"}));
}

}  // namespace
}  // namespace trireme
