// Tests what only somebody who signs or writes a log otherwise than Trireme could put there.
#include <chrono>
#include <csignal>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <sys/resource.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/evidence/audit_check.h"
#include "src/evidence/audit_log.h"
#include "tests/support/open_files.h"
#include "tests/support/temp_folder.h"
#include "tests/support/thread_sleeps.h"

namespace trireme {
namespace {

const SigningKey kOwnKey{SigningKey::Seed{1, 2, 3}};

// The lines of a log that is written without AuditLog.
class WrittenLines {
 public:
  void add(const std::string& line) {
    text_ += line + "\n";
    head_ = head_after(head_, line);
  }
  AuditHead& head() { return head_; }
  std::vector<std::int64_t> faults() const {
    std::vector<std::int64_t> lines;
    for (const AuditFault& fault :
         check_audit_text(text_, {{{kOwnKey.public_key(), "site"}}, {}}).faults) {
      lines.push_back(fault.line);
    }
    return lines;
  }

 private:
  std::string text_;
  AuditHead head_;
};

TEST(AuditForms, NumbersHaveNoGaps) {
  WrittenLines lines;
  for (int i = 0; i < 3; ++i) {
    lines.head().seq += i == 1 ? 1 : 0;
    lines.add(event_line(lines.head(), "test", {{"n", i}}));
    lines.add(head_line(lines.head(), kOwnKey));
  }
  EXPECT_THAT(lines.faults(), testing::ElementsAre(3));
}

TEST(AuditForms, AHeadHasOneSignature) {
  WrittenLines lines;
  lines.add(event_line(lines.head(), "test", {{"n", 1}}));
  const auto written = nlohmann::json::parse(head_line(lines.head(), kOwnKey));
  Envelope head = envelope_of(written["head"]);
  const SigningKey other = SigningKey::generate();
  head.signatures.push_back(make_envelope(head.payload_type, head.payload, &other).signatures[0]);
  lines.add(head_line(lines.head(), head));
  EXPECT_THAT(lines.faults(), testing::ElementsAre(2));
}

// Nobody has signed what stands beside the envelope.
TEST(AuditForms, AHeadHasNothingElse) {
  WrittenLines lines;
  lines.add(event_line(lines.head(), "test", {{"n", 1}}));
  auto head = nlohmann::ordered_json::parse(head_line(lines.head(), kOwnKey));
  head["details"] = {{"n", 2}};
  lines.add(head.dump());
  EXPECT_THAT(lines.faults(), testing::ElementsAre(2));
}

TEST(AuditForms, AWriterWaitsForAnother) {
  const TempFolder folder;
  const auto path = folder.path() / "audit.jsonl";
  AuditLog(path).append("first", {{"n", 1}});
  const std::string before = read_file(path);
  File other = File::open_to_append(path);
  ASSERT_EQ(::flock(other.fd(), LOCK_EX), 0);
  std::thread writer([&] { AuditLog(path).append("second", {{"n", 2}}); });
  wait_for_descriptors(path, 2);
  wait_for_sleeps(3);
  EXPECT_EQ(read_file(path), before);
  other.close();
  writer.join();
  EXPECT_NE(read_file(path), before);
  EXPECT_TRUE(check_audit_log(path, {}).faults.empty());
}

TEST(AuditForms, ALogThatCannotGrowStaysAsItWas) {
  const TempFolder folder;
  const auto path = folder.path() / "audit.jsonl";
  AuditLog(path).append("first", {{"n", 1}});
  const std::string good = read_file(path);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  void (*const handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{good.size() + 20, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_THROW(AuditLog(path).append("second", {{"n", 2}}), IoError);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(path), good);
}

}  // namespace
}  // namespace trireme
