#include "io/h5/h5_file.h"

#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

// libhdf5 1.10 forgets a buffer when a flush fails (the full disk below).
extern "C" const char* __lsan_default_suppressions() { return "leak:libhdf5"; }

namespace trireme {
namespace {
namespace fs = std::filesystem;

class H5FileTest : public testing::Test {
 protected:
  TempFolder temp_;
  fs::path folder_ = temp_.path();
};

// Writes a file the way shards are written and returns where its u16 dataset starts.
std::int64_t write_sample(const fs::path& path, std::int64_t alignment) {
  H5File file = H5File::create(path, alignment);
  file.set_attribute("format", "sample");
  file.set_attribute("empty", std::string());
  file.set_attribute("version", 7);
  const std::int64_t offset = file.create_contiguous("tokens", H5Type::u16, 5000);
  file.create_contiguous("doc_offsets", H5Type::u64, 3);
  file.close();
  return offset;
}

TEST_F(H5FileTest, DataWrittenAtTheOffsetIsReadByTheLibrary) {
  for (const std::int64_t alignment : {std::int64_t{4096}, std::int64_t{1} << 20}) {
    const fs::path path = folder_ / "a.h5";
    const std::int64_t offset = write_sample(path, alignment);
    EXPECT_EQ(offset % alignment, 0);
    std::vector<std::uint16_t> values(5000);
    for (std::size_t i = 0; i < values.size(); ++i) {
      values[i] = static_cast<std::uint16_t>(i * 13);
    }
    const int fd = ::open(path.c_str(), 2);
    ASSERT_EQ(::pwrite(fd, values.data(), 10000, offset), 10000);
    ::close(fd);

    const H5File file = H5File::open_to_read(path);
    std::vector<std::int64_t> read(10);
    file.integers("tokens")->read(4990, 10, read.data());
    for (std::size_t i = 0; i < 10; ++i) {
      EXPECT_EQ(read[i], values[4990 + i]);
    }
    const auto info = file.dataset("tokens");
    ASSERT_TRUE(info.has_value());
    EXPECT_TRUE(info->contiguous && info->integers && info->little_endian && !info->has_sign);
    EXPECT_EQ(info->offset, offset);
    EXPECT_EQ(info->element_bytes, 2);
    EXPECT_EQ(info->elements(), 5000);
    EXPECT_EQ(info->storage_bytes, 10000);
  }
}

TEST_F(H5FileTest, AttributesComeBack) {
  write_sample(folder_ / "a.h5", 4096);
  const H5File file = H5File::open_to_read(folder_ / "a.h5");
  EXPECT_EQ(file.text_attribute("format"), "sample");
  EXPECT_EQ(file.text_attribute("empty"), "");
  EXPECT_EQ(file.integer_attribute("version"), 7);
  EXPECT_EQ(file.text_attribute("absent"), std::nullopt);
  EXPECT_EQ(file.integer_attribute("absent"), std::nullopt);
  EXPECT_THROW(file.integer_attribute("format"), DataError);
  EXPECT_THROW(file.text_attribute("version"), DataError);
  EXPECT_EQ(file.dataset("absent"), std::nullopt);
  EXPECT_EQ(file.dataset("no/such/path"), std::nullopt);
  EXPECT_FALSE(file.integers("absent").has_value());
}

TEST_F(H5FileTest, TheSameContentGivesTheSameBytes) {
  write_sample(folder_ / "a.h5", 4096);
  write_sample(folder_ / "b.h5", 4096);
  EXPECT_EQ(read_file(folder_ / "a.h5"), read_file(folder_ / "b.h5"));
}

TEST_F(H5FileTest, ErrorsCarryTheWordsOfTheLibrary) {
  EXPECT_THROW(H5File::open_to_read(folder_ / "absent.h5"), NotFound);
  std::ofstream(folder_ / "text.h5") << "this is no HDF5 file";
  try {
    H5File::open_to_read(folder_ / "text.h5");
    FAIL() << "opened a text";
  } catch (const DataError& error) {
    EXPECT_NE(std::string(error.what()).find("signature"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("text.h5"), std::string::npos);
  }
  write_sample(folder_ / "cut.h5", 4096);
  fs::resize_file(folder_ / "cut.h5", 3000);
  EXPECT_THROW(H5File::open_to_read(folder_ / "cut.h5"), DataError);
}

TEST_F(H5FileTest, AFullDiskIsAnIoError) {
  const SmallFileSystem disk(64 << 10);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  const fs::path path = disk.path() / "a.h5";
  {
    std::ofstream filler(disk.path() / "filler", std::ios::binary);
    filler << std::string(1 << 17, 'x');
  }
  // The error may come at creation or at the flush, and the file must not look complete.
  EXPECT_ANY_THROW({
    write_sample(path, 4096);
    const H5File again = H5File::open_to_read(path);
    if (again.integer_attribute("version") != 7) {
      throw DataError("metadata lost");
    }
  });
}

}  // namespace
}  // namespace trireme
