#include "src/evidence/audit_reader.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/digest.h"
#include "src/evidence/audit_check.h"
#include "src/evidence/audit_log.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

TEST(AuditReader, ReadsAFileLikeItsText) {
  const TempFolder folder;
  const std::filesystem::path path = folder.path() / "log";
  const std::size_t most = kMostAuditLineBytes;
  std::string chunks;
  for (std::size_t bytes = 0; bytes < 3000; ++bytes) {  // line ends at every place in a chunk
    chunks += std::string(bytes % 1500, 'c') + "\n";
  }
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("\n\na"), std::string(most, 'a') + "\n",
        std::string(most, 'a'), std::string(most + 1, 'a'), std::string(most + 1, 'a') + "\nb\n",
        std::string(5 << 20, 'a') + "\nb", chunks, chunks + std::string(3 << 20, 'd')}) {
    write_file_durably(path, text);
    const File file = File::open_to_read(path);
    AuditReader reader(file, 0, file.size());
    std::string read;
    std::vector<std::string> digests;
    while (const auto line = reader.next()) {
      const std::string whole = text.substr(read.size(), static_cast<std::size_t>(line->bytes));
      EXPECT_EQ(line->text, std::string_view(whole).substr(0, most));
      EXPECT_EQ(line->sha256, whole.size() > most ? sha256_hex(whole) : "");
      read += whole + (line->has_end ? "\n" : "");
    }
    EXPECT_EQ(read, text);
    const AuditCheck of_file = check_audit_log(path, {});
    const AuditCheck of_text = check_audit_text(text, {});
    ASSERT_EQ(of_file.faults.size(), of_text.faults.size());
    for (std::size_t i = 0; i < of_file.faults.size(); ++i) {
      EXPECT_EQ(of_file.faults[i].line, of_text.faults[i].line);
      EXPECT_EQ(of_file.faults[i].what, of_text.faults[i].what);
    }
    EXPECT_EQ(of_file.head, of_text.head);
    EXPECT_EQ(of_file.lines, of_text.lines);
    EXPECT_EQ(of_file.faults_not_listed, of_text.faults_not_listed);
  }
}

TEST(AuditReader, DoesNotReadWhatIsAppendedMeanwhile) {
  const TempFolder folder;
  const std::filesystem::path path = folder.path() / "log";
  AuditLog(path).append("first", {{"n", 1}});
  const File file = File::open_to_read(path);
  AuditReader reader(file, 0, file.size());
  AuditLog(path).append("later", {{"n", 1}});
  int lines = 0;
  while (reader.next()) {
    ++lines;
  }
  EXPECT_EQ(lines, 2);  // log.created and the first event
}

}  // namespace
}  // namespace trireme
