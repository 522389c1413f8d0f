// Tests what the writer of an audit log makes of a head that a crash has torn.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/file.h"
#include "src/evidence/audit_check.h"
#include "src/evidence/audit_log.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::IsEmpty;

class AuditTorn : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "audit.jsonl"; }
  AuditLog signed_log() const { return AuditLog(path(), SigningKey(SigningKey::Seed{4, 5, 6})); }
  AuditDemands trusting() const {
    return {{{SigningKey(SigningKey::Seed{4, 5, 6}).public_key(), "site"}}, {}};
  }
  // Returns the line with this number, from 0.
  std::string line(int number) const {
    std::string text = read_file(path());
    for (; number > 0; --number) {
      text.erase(0, text.find('\n') + 1);
    }
    return text.substr(0, text.find('\n'));
  }

 private:
  TempFolder folder_;
};

TEST_F(AuditTorn, AnEventWhoseHeadIsTornIsQuotedAndTheLogVerifies) {
  AuditLog log = signed_log();
  log.append("first", {{"n", 1}});
  log.append("second", {{"n", 2}});
  const std::string whole = read_file(path());
  const std::string event = line(4);
  const std::size_t end = whole.find(event) + event.size() + 1;
  for (std::size_t bytes = end + 1; bytes < whole.size(); ++bytes) {
    write_file_durably(path(), whole.substr(0, bytes));
    log.append("third", {{"n", 3}});
    const AuditCheck found = check_audit_log(path(), trusting());
    ASSERT_THAT(found.faults, IsEmpty()) << bytes;
    ASSERT_EQ(found.unsigned_event, 0) << bytes;
    ASSERT_EQ(found.lines, 8) << bytes;
    const nlohmann::json torn = nlohmann::json::parse(line(4));
    EXPECT_EQ(torn["event"], "log.torn");
    EXPECT_EQ(torn["details"]["unsigned"], event);
    EXPECT_EQ(torn["details"]["bytes"], bytes - (end - event.size() - 1));
  }
}

TEST_F(AuditTorn, ATornHeadOfTheFirstLineBeginsTheLogAnew) {
  AuditLog log = signed_log();
  log.append("first", {{"n", 1}});
  const std::string whole = read_file(path());
  write_file_durably(path(), whole.substr(0, whole.find('\n') + 20));
  log.append("second", {{"n", 2}});
  const AuditCheck found = check_audit_log(path(), trusting());
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_EQ(found.unsigned_event, 0);
  EXPECT_EQ(found.lines, 6);
}

TEST_F(AuditTorn, WithoutAKeyATornLineLeavesTheEventBeforeIt) {
  (void)signed_log().append("first", {{"n", 1}});
  AuditLog(path()).append("plain", {{"n", 2}});
  const std::string whole = read_file(path());
  write_file_durably(path(), whole + R"({"seq":5,"prev":"0123","time":)");
  signed_log().append("third", {{"n", 3}});
  EXPECT_THAT(read_file(path()), testing::StartsWith(whole));
}

}  // namespace
}  // namespace trireme
