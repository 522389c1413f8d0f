#include "src/base/file.h"

#include <array>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/regular_file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using ::testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

TEST(File, WritesAndReadsAtOffsets) {
  const TempFolder folder;
  File file = File::create_new(folder.path() / "a");
  file.write("hello", 5);
  file.write_at(8, "there", 5);
  EXPECT_EQ(file.size(), 13);
  char text[13];
  EXPECT_EQ(file.read_at(0, text, 13), 13);
  EXPECT_EQ(std::string(text, 13), std::string("hello\0\0\0there", 13));
  EXPECT_EQ(file.read_at(10, text, 13), 3);
  EXPECT_EQ(file.read_at(99, text, 13), 0);
  file.sync();
  file.close();
}

TEST(File, TellsWhereATruncatedFileEnds) {
  const TempFolder folder;
  File file = File::create_new(folder.path() / "short");
  file.write("12345", 5);
  char text[8];
  EXPECT_THROW(file.read_exactly_at(2, text, 8), DataError);
  EXPECT_THAT(error_of([&] { file.read_exactly_at(2, text, 8); }),
              HasSubstr((folder.path() / "short").string() + " ends at byte 5"));
}

TEST(File, CreateNewNeverReplaces) {
  const TempFolder folder;
  write_file_durably(folder.path() / "a", "kept");
  EXPECT_THROW(File::create_new(folder.path() / "a"), IoError);
  EXPECT_EQ(read_file(folder.path() / "a"), "kept");
}

// Messages name the user's file, not the temporary file beside it.
TEST(WriteFileDurably, NamesTheFileThatCannotBeWritten) {
  const TempFolder folder;
  const std::filesystem::path path = folder.path() / "absent" / "a";
  EXPECT_EQ(message_of<NotFound>([&] { write_file_durably(path, "x"); }),
            fmt::format("cannot write {}: No such file or directory", path.string()));
}

TEST(File, AppendGoesToTheEnd) {
  const TempFolder folder;
  for (const char* word : {"one ", "two"}) {
    File file = File::open_to_append(folder.path() / "log");
    file.write(word, static_cast<std::int64_t>(std::string(word).size()));
    file.close();
  }
  EXPECT_EQ(read_file(folder.path() / "log"), "one two");
}

TEST(File, ErrorsNameThePathAndSayWhatToDo) {
  const TempFolder folder;
  EXPECT_THROW(File::open_to_read(folder.path() / "absent"), NotFound);
  EXPECT_THAT(error_of([&] { File::open_to_read(folder.path() / "absent"); }),
              HasSubstr((folder.path() / "absent").string()));
  EXPECT_THROW(File::create_new(folder.path() / "absent/below"), NotFound);
  EXPECT_THROW(throw_errno(EACCES, "open", "/x"), PolicyError);
  EXPECT_THROW(throw_errno(EIO, "read", "/x"), IoError);
  EXPECT_THAT(error_of([] { throw_errno(EROFS, "create", "/x"); }), HasSubstr("read-only"));
  EXPECT_THAT(error_of([] { throw_errno(EDQUOT, "write", "/x"); }), HasSubstr("quota"));
  EXPECT_THAT(error_of([] { throw_errno(ENOSPC, "write", "/x"); }), HasSubstr("full: free space"));
}

// Opening a FIFO would block until its other end is opened, and a device is not a file. Both are
// refused at once, whether they are opened for reading, appending, updating or locking.
TEST(File, NothingButRegularFilesIsOpened) {
  const TempFolder folder;
  const std::string fifo = folder.path() / "fifo";
  const std::string socket = folder.path() / "socket";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_EQ(::mknod(socket.c_str(), S_IFSOCK | 0600, 0), 0);
  std::filesystem::create_symlink(fifo, folder.path() / "link");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {fifo, "is a FIFO"},          {folder.path() / "link", "is a FIFO"},
      {socket, "is a socket"},      {folder.path(), "is a directory"},
      {"/dev/zero", "is a device"},
  };
  for (const auto& [path, words] : cases) {
    SCOPED_TRACE(path);
    EXPECT_THROW(read_file(path), DataError);
    EXPECT_THAT(error_of([&] { File::open_to_read(path); }),
                testing::AllOf(HasSubstr(path), HasSubstr(words)));
    EXPECT_THROW(File::open_to_append(path), PolicyError);
    EXPECT_THROW(File::open_to_update(path), PolicyError);
    EXPECT_THAT(error_of([&] { File::open_to_append(path); }), HasSubstr(words));
    EXPECT_THROW(write_named_file(path, "text"), PolicyError);
  }
  EXPECT_TRUE(std::filesystem::is_fifo(fifo));
  sync_directory(folder.path());
  const File plain = File::open_to_append(folder.path() / "plain");
  EXPECT_EQ(::fcntl(plain.fd(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(File, AFullDiskIsMetWhenReserving) {
  const SmallFileSystem disk(std::size_t{1} << 20);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  File file = File::create_new(disk.path() / "a");
  EXPECT_THROW(file.reserve(std::int64_t{1} << 30), IoError);
  file.reserve(std::int64_t{1} << 18);
  const std::string much(std::size_t{2} << 20, 'x');
  EXPECT_THROW(file.write(much.data(), static_cast<std::int64_t>(much.size())), IoError);
  EXPECT_LT(free_bytes(disk.path()), std::int64_t{1} << 20);
}

TEST(WriteFileDurably, LeavesTheOldFileWhenTheDiskIsFull) {
  const SmallFileSystem disk(std::size_t{256} << 10);
  if (!disk.mounted()) {
    GTEST_SKIP() << "needs to mount a file system: run as root with CAP_SYS_ADMIN";
  }
  const auto path = disk.path() / "state";
  write_file_durably(path, "the old state");
  EXPECT_THROW(write_file_durably(path, std::string(std::size_t{1} << 20, 'x')), IoError);
  EXPECT_EQ(read_file(path), "the old state");
  // No temporary file is left behind, either.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(disk.path()), {}), 1);
}

TEST(WriteFileDurably, ReplacesAsAWhole) {
  const TempFolder folder;
  const auto path = folder.path() / "state";
  write_file_durably(path, std::string(100, 'a'));
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    while (!stop) {
      const std::string seen = read_file(path);
      EXPECT_TRUE(seen == std::string(100, 'a') || seen == std::string(200000, 'b')) << seen.size();
    }
  });
  for (int i = 0; i < 20; ++i) {
    write_file_durably(path, std::string(200000, 'b'));
    write_file_durably(path, std::string(100, 'a'));
  }
  stop = true;
  reader.join();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(WriteFileDurably, NeverReplacesADeviceOrAStream) {
  const TempFolder folder;
  ASSERT_EQ(::mkfifo((folder.path() / "fifo").c_str(), 0600), 0);
  std::filesystem::create_symlink("/dev/null", folder.path() / "null");
  std::filesystem::create_symlink("fifo", folder.path() / "stdout");
  for (const char* name : {"null", "stdout"}) {
    EXPECT_THROW(write_file_durably(folder.path() / name, "text"), PolicyError) << name;
    EXPECT_TRUE(std::filesystem::is_symlink(folder.path() / name)) << name;
  }
  // A FIFO in the place of a state file is replaced.
  write_file_durably(folder.path() / "fifo", "state");
  EXPECT_EQ(read_file(folder.path() / "fifo"), "state");
}

TEST(RenameDurably, NeverReplaces) {
  const TempFolder folder;
  const auto a = folder.path() / "a";
  const auto b = folder.path() / "b";
  std::filesystem::create_directory(a);
  rename_durably(a, b);
  EXPECT_TRUE(std::filesystem::is_directory(b));
  std::filesystem::create_directory(a);
  EXPECT_THROW(rename_durably(a, b), IoError);
  EXPECT_TRUE(std::filesystem::exists(a));
  EXPECT_THROW(rename_durably(folder.path() / "absent", folder.path() / "c"), NotFound);
}

TEST(ReadFile, RefusesWhatIsTooLarge) {
  const TempFolder folder;
  std::ofstream(folder.path() / "a") << "12345";
  EXPECT_EQ(read_file(folder.path() / "a", 5), "12345");
  EXPECT_THROW(read_file(folder.path() / "a", 4), DataError);
  EXPECT_THROW(read_file(folder.path()), Error);
}

TEST(ReadToEnd, ContinuesAfterShortReads) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_DIRECT | O_CLOEXEC), 0);  // each read returns one write
  const UniqueHandle<FileDescriptorTraits> reader(ends[0]);
  UniqueHandle<FileDescriptorTraits> writer(ends[1]);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(::write(writer.get(), "abc", 3), 3);
    ASSERT_EQ(::write(writer.get(), "de", 2), 2);
  }
  EXPECT_EQ(read_to_end(reader.get(), 5, "pipe"), "abcde") << "and no more";
  writer.reset();
  EXPECT_EQ(read_to_end(reader.get(), 100, "pipe"), "abcde");
  EXPECT_EQ(read_to_end(reader.get(), 100, "pipe"), "");
}

TEST(ReadToEnd, NamesThePathInErrors) {
  const TempFolder folder;
  const UniqueHandle<FileDescriptorTraits> opened(::open(folder.path().c_str(), O_RDONLY));
  EXPECT_THAT(message_of<Error>([&] { read_to_end(opened.get(), 1, folder.path()); }),
              testing::HasSubstr(folder.path().string()));
}

TEST(MakeDirectories, MakesThemAllAndAcceptsThem) {
  const TempFolder folder;
  make_directories(folder.path() / "a/b/c");
  make_directories(folder.path() / "a/b/c");
  EXPECT_TRUE(std::filesystem::is_directory(folder.path() / "a/b/c"));
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_THROW(make_directories(folder.path() / "file/below"), Error);
}

TEST(File, MovesWithoutClosingTwice) {
  const TempFolder folder;
  File a = File::create_new(folder.path() / "a");
  const int number = a.fd();
  File b = std::move(a);
  EXPECT_EQ(b.fd(), number);
  b.write("x", 1);
  b.close();
  EXPECT_EQ(::fcntl(number, F_GETFD), -1);
  b.close();
}

}  // namespace
}  // namespace trireme
