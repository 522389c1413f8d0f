#include "io/archive/tar_reader.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/io/archive/make_archives.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Returns "NAME=CONTENTS" for files, and the name for other members.
std::vector<std::string> members_of(ByteStream& from) {
  TarReader archive(from, "x.tar");
  std::vector<std::string> members;
  while (const auto member = archive.next()) {
    members.push_back(member->is_file ? member->name + "=" + all_of(archive) : member->name);
    EXPECT_TRUE(!member->is_file ||
                members.back().size() ==
                    member->name.size() + 1 + static_cast<std::size_t>(member->bytes));
  }
  return members;
}

std::vector<std::string> members_of(const std::string& archive, std::int64_t at_once = 100'000) {
  TextStream from(archive, at_once);
  return members_of(from);
}

std::string tar_refusal(const std::string& archive) {
  return message_of<DataError>([&] { (void)members_of(archive); });
}

std::string pax_record(const std::string& record) {
  const std::size_t bytes = record.size() + 2;  // with a blank and a newline
  const std::size_t length = bytes + (bytes + 1 < 10 ? 1 : bytes + 2 < 100 ? 2 : 3);
  return fmt::format("{} {}\n", length, record);
}

TEST(TarReader, ReadsWhatPythonWrites) {
  const TempFolder folder;
  const std::string command =
      fmt::format("/usr/bin/python3 {}/tests/io/archive/write_archives.py {}", TRIREME_SOURCE_DIR,
                  folder.path().string());
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::string folders;
  std::string wide;
  for (int i = 0; i < 60; ++i) {
    folders += i < 20 ? "folder/" : "";
    wide += "n\xC3\xA4me";
  }
  for (const char* format : {"ustar", "gnu", "pax"}) {
    SCOPED_TRACE(format);
    const File file = File::open_to_read(folder.path() / fmt::format("{}.tar", format));
    FileRange range(file, 0, file.size());
    std::vector<std::string> members = members_of(range);
    std::vector<std::string> wanted = {"folder/",
                                       "folder/a.txt=first",
                                       "folder/link",
                                       "folder/hard",
                                       "folder/fifo",
                                       "../above.txt=" + std::string(512, 'x'),
                                       folders + "long name.txt=long",
                                       "empty.txt="};
    if (format != std::string("ustar")) {
      wanted.push_back(wide + ".txt=" + std::string(513, 'y'));
    }
    wanted.push_back("mtime.txt=z");
    EXPECT_EQ(members, wanted);
  }
}

TEST(TarReader, SkipsWhatIsNotReadAndReadsJoinedArchives) {
  const std::string one = tar_member("a", "first") + tar_member("b", std::string(5000, 'b'));
  EXPECT_THAT(members_of(one + kTarEnd + tar_member("c", "") + kTarEnd, 13),
              ElementsAre("a=first", "b=" + std::string(5000, 'b'), "c="));
  TextStream from(one + kTarEnd);
  TarReader archive(from, "x");
  EXPECT_EQ(archive.next()->offset, 0);
  EXPECT_EQ(archive.next()->offset, 1024);
  char byte = 0;
  EXPECT_EQ(archive.read(&byte, 1), 1);
  EXPECT_EQ(archive.next(), std::nullopt);
  EXPECT_EQ(archive.read(&byte, 1), 0);
}

TEST(TarReader, ReadsLargeSizesAndOldHeaders) {
  std::string large = tar_header("a", 0);
  large.replace(124, 12, std::string("\x80\0\0\0\0\0\0\0\0\0\0\5", 12));
  sign_header(large);
  EXPECT_THAT(members_of(large + tar_member("", "12345").substr(512) + kTarEnd),
              ElementsAre("a=12345"));
  std::string old = tar_header("folder/", 0, '\0');
  old.replace(257, 8, 8, '\0');
  sign_header(old);
  EXPECT_THAT(members_of(old + kTarEnd), ElementsAre("folder/"));
  const std::string pax = pax_record("size=3") + pax_record("path=long");
  EXPECT_THAT(members_of(tar_member("x", pax, 'x') + tar_header("a", 0) +
                         tar_member("", "123").substr(512) + kTarEnd),
              ElementsAre("long=123"));
}

TEST(TarReader, RefusesArchivesThatAreCutOff) {
  const std::string archive = tar_member("././@LongLink", "long name", 'L') +
                              tar_member("a", "first") + std::string(512, '\0');
  EXPECT_THAT(members_of(archive), ElementsAre("long name=first"));
  for (std::size_t bytes = 0; bytes < archive.size(); bytes += 7) {
    EXPECT_THAT(tar_refusal(archive.substr(0, bytes)), StartsWith("x.tar: at byte ")) << bytes;
  }
  EXPECT_THAT(tar_refusal(""), HasSubstr("cut off"));
  EXPECT_THAT(tar_refusal(tar_member("a", "first").substr(0, 515)), HasSubstr("cut off"));
  EXPECT_THAT(tar_refusal(tar_member("a", "b", 'L') + kTarEnd), HasSubstr("behind an extended"));
}

TEST(TarReader, RefusesDamagedHeaders) {
  const std::string good = tar_member("a.txt", "first") + kTarEnd;
  for (std::size_t at = 0; at < 512; at += 3) {
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x41);
    EXPECT_THAT(tar_refusal(damaged), HasSubstr("checksum")) << at;
  }
  EXPECT_THAT(tar_refusal(std::string(2000, 'x')), HasSubstr(".tar.gz"));
  for (const std::string& size :
       {std::string("99999999999"), std::string("-0000000001"), std::string(12, '\xFF'),
        std::string("\xC0\0\0\0\0\0\0\0\0\0\0\0", 12), std::string("0x000000010")}) {
    std::string header = tar_header("a", 0);
    header.replace(124, size.size(), size);
    sign_header(header);
    EXPECT_THAT(tar_refusal(header + kTarEnd), HasSubstr("size of a header is not a number"));
  }
  std::string huge = tar_header("a", 0);
  huge.replace(124, 12, "777777777777");
  sign_header(huge);
  EXPECT_THAT(tar_refusal(huge + kTarEnd), HasSubstr("cut off, "));
}

TEST(TarReader, RefusesWhatItDoesNotKnow) {
  for (const char type : {'S', 'M', 'V', 'D', 'A', '8', '\x7F'}) {
    EXPECT_THAT(tar_refusal(tar_member("a", "", type) + kTarEnd),
                HasSubstr(type == 'S' ? "--sparse" : "unknown type"));
  }
  const auto with_pax = [](const std::string& records, char type = 'x') {
    return tar_refusal(tar_member("x", records, type) + tar_member("a", "") + kTarEnd);
  };
  EXPECT_THAT(with_pax(pax_record("GNU.sparse.major=1")), HasSubstr("--sparse"));
  EXPECT_THAT(with_pax(pax_record("path=b"), 'g'), HasSubstr("global"));
  EXPECT_THAT(with_pax(pax_record(std::string("path=a\0/../b", 12))), HasSubstr("zero byte"));
  EXPECT_THAT(with_pax(pax_record("size=-1")), HasSubstr("size in an extended header"));
  EXPECT_THAT(with_pax(pax_record("size=9223372036854775807")), HasSubstr("size in an extended"));
  for (const char* records : {"99 path=b\n", "0 path=b\n", "path=b\n", "-9 path=b\n", "9 path=b ",
                              "3 \n", "9\n", "18446744073709551616 p=b\n", "7 path\n", " "}) {
    EXPECT_THAT(with_pax(records), HasSubstr("is damaged")) << records;
  }
  EXPECT_THAT(tar_refusal(tar_header("x", 2'000'000, 'x')), HasSubstr("claims 2000000 bytes"));
}

}  // namespace
}  // namespace trireme
