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

using testing::ElementsAre;
using testing::HasSubstr;
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
    EXPECT_THAT(found.notes, ElementsAre(HasSubstr("line 5: ")));
    EXPECT_THAT(found.notes.front(), HasSubstr("bytes of an incomplete line were removed"));
    EXPECT_EQ(torn["details"]["unsigned"], event);
    EXPECT_EQ(torn["details"]["bytes"], bytes - (end - event.size() - 1));
  }
}

TEST_F(AuditTorn, AnEmptiedLogIsSaidToBeEmpty) {
  testing::internal::CaptureStderr();
  signed_log().append("first", {{"n", 1}});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  std::filesystem::resize_file(path(), 0);
  testing::internal::CaptureStderr();
  signed_log().append("second", {{"n", 2}});
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("exists, but is empty"));
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

class AuditEnd : public AuditTorn {
 protected:
  // Returns what the next append() says about a log with this text.
  std::string fault_after(const std::string& text, bool is_signed) {
    write_file_durably(path(), text);
    AuditLog log = is_signed ? signed_log() : AuditLog(path());
    const std::string fault = told_by(log);
    EXPECT_EQ(told_by(log), "");  // what this writer has left
    return fault;
  }
  // Appends an event, and returns what the warning says about the end of the log; "" without one.
  static std::string told_by(AuditLog& log) {
    testing::internal::CaptureStderr();
    log.append("next", {{"n", 9}});
    const std::string told = testing::internal::GetCapturedStderr();
    constexpr std::string_view kBefore = "was not as its writers leave it: ";
    const std::size_t at = told.find(kBefore);
    return at == std::string::npos
               ? told
               : told.substr(at + kBefore.size(), told.find("; examine") - at - kBefore.size());
  }
  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.rfind(from), from.size(), to);
  }
};

TEST_F(AuditEnd, ThatIsAsItWasWrittenIsNoFault) {
  for (const bool is_signed : {false, true}) {
    AuditLog log = is_signed ? signed_log() : AuditLog(path());
    EXPECT_EQ(told_by(log), "");
    EXPECT_EQ(fault_after(read_file(path()), is_signed), "");
    std::filesystem::remove(path());
    write_file_durably(path(), "");
    EXPECT_THAT(told_by(log), HasSubstr("exists, but is empty"));
    std::filesystem::remove(path());
  }
}

TEST_F(AuditEnd, ThatDoesNotContinueTheChainIsTold) {
  AuditLog log(path());
  log.append("first", {{"n", 1}});
  log.append("second", {{"n", 2}});
  const std::string text = read_file(path());
  const std::string breach = "its last line does not continue the one before it";
  EXPECT_EQ(fault_after(replaced(text, R"("event":"first")", R"("event":"FIRST")"), false), breach);
  EXPECT_EQ(fault_after(text + text.substr(text.rfind("{\"seq\"")), false), breach);
  EXPECT_EQ(fault_after(text.substr(text.rfind("{\"seq\"")), false), breach);  // the only line
  EXPECT_EQ(fault_after(text + R"({"seq":3})" + "\n", false).find("one of its last two lines"), 0U);
  EXPECT_EQ(fault_after(text + R"({"seq":)", false), "its last line is incomplete");
  EXPECT_EQ(fault_after(text.substr(0, text.find('\n') + 1) + std::string(1000, 'x') + "\n" +
                            text.substr(text.rfind("{\"seq\"")),
                        false)
                .find("one of its last two lines"),
            0U);
}

TEST_F(AuditEnd, OfASignedLogHasASignature) {
  signed_log().append("first", {{"n", 1}});
  const std::string text = read_file(path());
  const std::size_t head = text.rfind("{\"seq\"");
  EXPECT_EQ(fault_after(text.substr(0, head), true), "its last event has no signature");
  const std::size_t sig = text.rfind("\"sig\":\"") + 7;
  std::string forged = text;
  forged[sig] = forged[sig] == 'A' ? 'B' : 'A';
  EXPECT_EQ(fault_after(forged, true), "the signature of its last event was forged or changed");
  EXPECT_EQ(fault_after(forged, false), "");  // nobody without the key can tell
  EXPECT_EQ(fault_after(replaced(text, R"("event":"first")", R"("event":"FIRST")"), true),
            "its last line does not continue the one before it");
}

}  // namespace
}  // namespace trireme
