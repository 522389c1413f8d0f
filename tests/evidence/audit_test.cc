// Tests the writer and the checker of audit logs together.
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/evidence/audit_check.h"
#include "src/evidence/audit_log.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Audit : public testing::Test {
 protected:
  std::filesystem::path path() const { return folder_.path() / "audit.jsonl"; }
  AuditLog signed_log() const { return AuditLog(path(), SigningKey(SigningKey::Seed{1, 2, 3})); }
  AuditDemands trusting() const {
    return {{{SigningKey(SigningKey::Seed{1, 2, 3}).public_key(), "site"}}, {}};
  }
  std::vector<std::string> lines() const {
    std::vector<std::string> all;
    const std::string text = read_file(path());
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t end = text.find('\n', at);
      all.push_back(text.substr(at, end - at));
      at = end == std::string::npos ? text.size() : end + 1;
    }
    return all;
  }
  static AuditCheck check(const std::vector<std::string>& lines, const AuditDemands& demands = {}) {
    std::string text;
    for (const std::string& line : lines) {
      text += line + "\n";
    }
    return check_audit_text(text, demands);
  }
  static std::vector<std::int64_t> lines_of(const AuditCheck& check) {
    std::vector<std::int64_t> found;
    for (const AuditFault& fault : check.faults) {
      found.push_back(fault.line);
    }
    return found;
  }
  // Five events without a key: with log.created, six lines.
  std::vector<std::string> six_lines() const {
    AuditLog log(path());
    for (int i = 1; i <= 5; ++i) {
      log.append("test.event", {{"number", i}});
    }
    return lines();
  }

 private:
  TempFolder folder_;
};

TEST_F(Audit, AnUntouchedLogHasNoFault) {
  AuditLog log = signed_log();
  log.append("train.start", {{"run", "r\n\x1b[2J\xff"}});
  const AuditHead head = log.append("train.end", {{"code", 0}});
  const AuditCheck found = check_audit_log(path(), trusting());
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_EQ(found.lines, 6);  // log.created and two events, with their heads
  EXPECT_EQ(found.signed_lines, 6);
  EXPECT_EQ(found.unsigned_event, 0);
  EXPECT_EQ(found.head, head);
  EXPECT_THAT(found.signer, HasSubstr("site (key "));
  EXPECT_EQ(parse_audit_head(to_text(head)), head);
}

TEST_F(Audit, EveryChangedByteOfASignedLogIsFoundInItsLine) {
  // Every kind of line: the first, an event, and the heads of both.
  signed_log().append("a", {{"x", "y"}});
  const std::string good = read_file(path());
  std::int64_t line = 1;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const int flip : {1, 4}) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ flip);
      const AuditCheck found = check_audit_text(bad, trusting());
      // Without its line end, a line swallows the next one.
      ASSERT_FALSE(found.faults.empty()) << "byte " << at;
      EXPECT_THAT(lines_of(found),
                  testing::Contains(testing::AllOf(testing::Ge(line - 1), testing::Le(line))))
          << "byte " << at << " of line " << line << ": " << found.faults[0].what;
    }
    line += good[at] == '\n' ? 1 : 0;
  }
}

TEST_F(Audit, AnEditedLineIsNamed) {
  const std::vector<std::string> good = six_lines();
  for (std::size_t at = 0; at + 1 < good.size(); ++at) {
    std::vector<std::string> bad = good;
    bad[at].replace(bad[at].find("\"event\""), 7, "\"evenT\"");
    EXPECT_THAT(lines_of(check(bad)), testing::Contains(at + 1)) << at;
    bad = good;
    const std::size_t pid = bad[at].find("\"pid\":") + 6;
    bad[at][pid] = bad[at][pid] == '1' ? '2' : '1';
    EXPECT_THAT(lines_of(check(bad)), ElementsAre(at + 1)) << at;
    bad = good;
    const std::size_t prev = bad[at].find("\"prev\":\"") + 8;
    bad[at][prev] = bad[at][prev] == '1' ? '2' : '1';
    EXPECT_THAT(lines_of(check(bad)), testing::Contains(at + 1)) << at;
  }
}

TEST_F(Audit, DeletedAndReorderedLinesAreFound) {
  const std::vector<std::string> good = six_lines();
  for (std::size_t at = 0; at + 1 < good.size(); ++at) {
    std::vector<std::string> bad = good;
    bad.erase(bad.begin() + static_cast<std::ptrdiff_t>(at));
    EXPECT_THAT(lines_of(check(bad)), ElementsAre(at + 1)) << at;
    bad = good;
    std::swap(bad[at], bad[at + 1]);
    EXPECT_EQ(check(bad).faults.at(0).line, static_cast<std::int64_t>(at + 1)) << at;
    bad = good;
    bad.insert(bad.begin() + static_cast<std::ptrdiff_t>(at), bad[at]);
    EXPECT_EQ(check(bad).faults.at(0).line, static_cast<std::int64_t>(at + 2)) << at;
  }
}

TEST_F(Audit, AForkIsFound) {
  AuditLog log(path());
  log.append("a", {{"n", 1}});
  const std::string before = read_file(path());
  log.append("b", {{"n", 2}});
  const std::string one = lines().back();
  write_file_durably(path(), before);
  log.append("c", {{"n", 3}});
  write_file_durably(path(), before + one + "\n" + lines().back() + "\n");
  const AuditCheck found = check_audit_log(path(), {});
  ASSERT_EQ(found.faults.size(), 1U);
  EXPECT_EQ(found.faults[0].line, 4);
  EXPECT_THAT(found.faults[0].what, HasSubstr("forked"));
}

TEST_F(Audit, ACutIsFoundByAHeadFromElsewhere) {
  const std::vector<std::string> good = six_lines();
  const AuditHead head = check(good).head;
  AuditDemands demands;
  demands.heads = {head};
  EXPECT_THAT(check(good, demands).faults, IsEmpty());
  std::vector<std::string> bad = good;
  bad.pop_back();
  EXPECT_THAT(check(bad).faults, IsEmpty());  // nothing within the log shows it
  const AuditCheck found = check(bad, demands);
  ASSERT_THAT(lines_of(found), ElementsAre(5));
  EXPECT_THAT(found.faults[0].what, HasSubstr("cut"));
  bad = good;
  bad.back().replace(bad.back().find("\"number\":5"), 10, "\"number\":6");
  EXPECT_THAT(check(bad).faults, IsEmpty());
  EXPECT_THAT(lines_of(check(bad, demands)), ElementsAre(6));
  std::string torn;
  for (const std::string& line : good) {
    torn += line + "\n";
  }
  torn.pop_back();
  EXPECT_THAT(lines_of(check_audit_text(torn, {})), ElementsAre(6));
}

TEST_F(Audit, LinesAfterTheLastHeadAreNotSigned) {
  signed_log().append("a", {{"n", 1}});
  AuditLog(path()).append("b", {{"n", 2}});
  const AuditCheck found = check_audit_log(path(), trusting());
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_EQ(found.lines, 5);
  EXPECT_EQ(found.signed_lines, 4);
  EXPECT_EQ(found.unsigned_event, 5);
  AuditDemands others;
  others.trusted = {{SigningKey::generate().public_key(), ""}};
  EXPECT_EQ(check_audit_log(path(), others).signed_lines, 0);
}

// A key signs what it finds, so events that somebody added without it must not become trusted.
TEST_F(Audit, ALaterHeadDoesNotVouchForEventsWithoutOne) {
  (void)signed_log().append("test.first", {});
  (void)AuditLog(path()).append("test.added", {});
  (void)AuditLog(path(), SigningKey(SigningKey::Seed{9})).append("test.other_key", {});
  (void)signed_log().append("test.last", {});
  const AuditCheck found = check(lines(), trusting());
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_EQ(found.signed_lines, found.lines);
  EXPECT_EQ(found.unsigned_event, 5);  // after log.created and test.first, each with its head
  EXPECT_EQ(check(lines()).unsigned_event, 0);
}

TEST_F(Audit, AHeadOfAnotherLogIsRefused) {
  signed_log().append("a", {{"n", 1}});
  std::vector<std::string> all = lines();
  const std::string head = all.back();
  all.pop_back();
  all.back().replace(all.back().find("\"n\":1"), 5, "\"n\":2");
  const AuditHead changed = check(all).head;
  // A forger who has no key continues the changed line with the old envelope.
  all.push_back(head_line(changed, envelope_of(nlohmann::json::parse(head)["head"])));
  EXPECT_THAT(lines_of(check(all, trusting())), ElementsAre(4));
}

TEST_F(Audit, ManyWritersKeepOneChain) {
  constexpr int kWriters = 8;
  constexpr int kEvents = 10;
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      AuditLog log = signed_log();
      for (int i = 0; i < kEvents; ++i) {
        log.append("test.event", {{"writer", writer}, {"number", i}});
      }
    });
  }
  for (std::thread& writer : writers) {
    writer.join();
  }
  const AuditCheck found = check_audit_log(path(), trusting());
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_EQ(found.lines, 2 + 2 * kWriters * kEvents);
}

TEST_F(Audit, ATornLineIsRemovedAndRecorded) {
  const std::string good = [&] {
    (void)six_lines();
    return read_file(path());
  }();
  write_file_durably(path(), good + "{\"seq\":6,\"pr");
  AuditLog(path()).append("after", {{"n", 1}});
  const AuditCheck found = check_audit_log(path(), {});
  EXPECT_THAT(found.faults, IsEmpty());
  EXPECT_EQ(found.lines, 8);
  EXPECT_THAT(lines()[6], HasSubstr("\"log.torn\",\"details\":{\"bytes\":12,"));
}

TEST_F(Audit, ADamagedLastLineStopsTheWriter) {
  for (const char* const text : {"typo\n", "\n", "{}\n", "{\"seq\":-1}\n", "{\"seq\":1.5}\n"}) {
    write_file_durably(path(), text);
    EXPECT_THROW(AuditLog(path()).append("a", {{"n", 1}}), DataError) << text;
    EXPECT_EQ(read_file(path()), text);
  }
  std::filesystem::remove(path());
  std::filesystem::create_symlink("elsewhere", path());
  EXPECT_THROW(AuditLog(path()).append("a", {{"n", 1}}), PolicyError);
  EXPECT_THROW(AuditLog("/nowhere/log").append("a", {{"n", 1}}), NotFound);
}

TEST_F(Audit, DetailsThatAreTooLongAreReplaced) {
  AuditLog(path()).append("long", {{"text", std::string(kMostAuditLineBytes, 'x')}});
  AuditLog(path()).append("next", {{"n", 1}});
  EXPECT_THAT(check_audit_log(path(), {}).faults, IsEmpty());
  EXPECT_THAT(lines()[1], HasSubstr("omitted_bytes"));
}

TEST_F(Audit, HostileTextsAreRefused) {
  for (const std::string& text :
       {std::string("\n"), std::string("{}\n"), std::string(1 << 20, '['),
        std::string("{\"seq\":9223372036854775807,\"prev\":\"\",\"event\":\"head\"}\n"),
        std::string("{\"seq\":0,\"prev\":1,\"event\":\"\"}\n"),
        std::string("{\"seq\":0,\"seq\":1,\"prev\":\"\",\"event\":\"\"}\n"),
        std::string("{\"seq\":0,\"prev\":\"" + std::string(64, '0') + "\",\"event\":\"head\",") +
            "\"head\":{\"payloadType\":\"\",\"payload\":\"AA==\",\"signatures\":[]}}\n",
        std::string(100, '\0') + "\n"}) {
    EXPECT_FALSE(check_audit_text(text, {}).faults.empty()) << text.substr(0, 200);
  }
  EXPECT_EQ(check_audit_text("", {}).lines, 0);
  for (const char* const text : {"", "1", "1:", ":0", "-1:", "99999999999999999999:", "1:xyz"}) {
    EXPECT_THROW((void)parse_audit_head(text), ConfigError) << text;
  }
}

TEST_F(Audit, SignaturesAreCheckedInBatches) {
  const SigningKey ours(SigningKey::Seed{1, 2, 3});
  const SigningKey theirs(SigningKey::Seed{9});
  constexpr int kEvents = 200;  // several batches
  std::vector<std::string> all;
  AuditHead head;
  const auto add = [&](const std::string& line) {
    all.push_back(line);
    head = head_after(head, line);
  };
  for (int i = 0; i < kEvents; ++i) {
    add(event_line(head, "test", {{"n", i}}));
    add(head_line(head, i == 160 ? theirs : ours));
  }
  AuditDemands demands = trusting();
  for (const auto& [threads, batch] :
       std::initializer_list<std::pair<int, std::size_t>>{{1, 64}, {3, 64}, {3, 1}, {1, 4096}}) {
    demands.threads = threads;
    demands.batch = batch;
    const AuditCheck found = check(all, demands);
    EXPECT_THAT(found.faults, IsEmpty());
    EXPECT_EQ(found.signed_lines, 2 * kEvents);
    EXPECT_EQ(found.unsigned_event, 321);
  }
  // A forged signature, and a later line that was changed.
  std::vector<std::string> bad = all;
  const std::size_t at = bad[399].find("\"sig\":\"") + 9;
  bad[399][at] = bad[399][at] == 'A' ? 'B' : 'A';
  bad[20].replace(bad[20].find("\"n\":"), 4, "\"m\":");
  for (const std::size_t batch : {64U, 4096U}) {
    demands.batch = batch;
    EXPECT_THAT(lines_of(check(bad, demands)), ElementsAre(21, 400));
    EXPECT_EQ(check(bad, demands).signed_lines, 398);
  }
}

TEST_F(Audit, TheEndOfALogIsChecked) {
  EXPECT_THROW((void)check_audit_end(path(), {}), NotFound);
  for (int i = 0; i < 6; ++i) {
    signed_log().append("long", {{"text", std::string(kMostAuditLineBytes - 2000, 'x')}});
    EXPECT_THAT(check_audit_end(path(), trusting()).faults, IsEmpty()) << i;
  }
  EXPECT_LT(check_audit_end(path(), trusting()).lines, 10);
  const std::string good = read_file(path());
  for (const std::size_t at : {good.find("xxx"), good.rfind("xxx"), good.rfind("\"sig\":\"") + 9}) {
    std::string bad = good;
    bad[at] = bad[at] == 'y' ? 'z' : 'y';
    write_file_durably(path(), bad);
    EXPECT_EQ(check_audit_end(path(), trusting()).faults.empty(), at < good.size() / 2) << at;
  }
}

TEST_F(Audit, ALogIsCheckedWithoutWriting) {
  AuditLog(path()).check();
  EXPECT_FALSE(std::filesystem::exists(path()));
  (void)six_lines();
  const std::string good = read_file(path());
  AuditLog(path()).check();
  EXPECT_EQ(read_file(path()), good);
  write_file_durably(path(), good + "typo\n");
  EXPECT_THROW(AuditLog(path()).check(), DataError);
  EXPECT_THROW(AuditLog(path().parent_path()).check(), PolicyError);
  EXPECT_THROW(AuditLog("/nowhere/log").check(), NotFound);
  EXPECT_THROW(AuditLog("/proc/log").check(), Error);
  std::filesystem::remove(path());
  std::filesystem::create_symlink("elsewhere", path());
  EXPECT_THROW(AuditLog(path()).check(), PolicyError);
}

TEST_F(Audit, LinesThatBeginAsHeadsAreHeads) {
  signed_log().append("head.of.nothing",
                      {{"event", "head"}, {"text", "\"event\":\"head\",\"head\":"}});
  for (const std::string& line : lines()) {
    EXPECT_EQ(begins_as_head(line), nlohmann::json::parse(line)["event"] == kHeadEvent) << line;
  }
  for (const char* const text :
       {"", "{", "{\"seq\":", "{\"seq\":1,\"prev\":\"", "\",\"event\":\"head\","}) {
    EXPECT_FALSE(begins_as_head(text)) << text;
  }
}

TEST_F(Audit, AClockThatWentBackIsNoted) {
  std::vector<std::string> all = six_lines();
  all.back().replace(all.back().find("\"time\":\"20"), 10, "\"time\":\"19");
  EXPECT_THAT(check(all).notes, ElementsAre(HasSubstr("line 6: the clock went back")));
}

}  // namespace
}  // namespace trireme
