#include "src/app/command/audit_trail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<std::string> events_of(const std::filesystem::path& log) {
  std::vector<std::string> events;
  const std::string text = read_file(log);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const auto line = nlohmann::json::parse(text.substr(at, end - at));
    events.push_back(line.at("event").get<std::string>());
    at = end + 1;
  }
  return events;
}

TEST(AuditTrail, RecordsTheDigestOfAPrompt) {
  const std::string digest = "sha256:" + sha256_hex("secret");
  EXPECT_THAT(recorded_arguments({"generate", "--prompt", "secret", "--tokens", "2"}).words,
              ElementsAre("generate", "--prompt", digest, "--tokens", "2"));
  EXPECT_THAT(recorded_arguments({"generate", "--prompt=secret", "--prompts", "file"}).words,
              ElementsAre("generate", "--prompt=" + digest, "--prompts", "file"));
  EXPECT_THAT(recorded_arguments({"data", "pack", "file"}).words,
              ElementsAre("data", "pack", "file"));
}

TEST(AuditTrail, RecordsNoPromptThatWasMistyped) {
  const std::string digest = "sha256:" + sha256_hex("secret");
  const auto words = [](std::vector<std::string> more) {
    more.insert(more.begin(), "generate");
    return recorded_arguments(more).words;
  };
  EXPECT_THAT(words({"--promp", "secret"}), ElementsAre("generate", "--promp", digest));
  EXPECT_THAT(words({"--promp=secret"}), ElementsAre("generate", "--promp=" + digest));
  EXPECT_THAT(words({"--json", "secret"}), ElementsAre("generate", "--json", digest));
  EXPECT_THAT(words({"--seed", "1", "secret"}), ElementsAre("generate", "--seed", "1", digest));
  EXPECT_THAT(words({"--seed=1", "secret"}), ElementsAre("generate", "--seed=1", digest));

  const TempFolder folder;
  const std::string log = (folder.path() / "log").string();
  const std::string variable = "TRIREME_AUDIT__LOG=" + log;
  const char* const environment[] = {variable.c_str(), nullptr};
  AuditTrail trail;
  trail.begin_if_audited({"generate", "secret"}, environment);
  trail.end(2, "config", "unexpected argument 'secret'");
  EXPECT_THAT(read_file(log), Not(HasSubstr("secret")));
  EXPECT_THAT(read_file(log), HasSubstr("may repeat a prompt"));
}

TEST(AuditTrail, RecordsTheDigestOfAKeyWithoutAKnownScheme) {
  const auto words = [](std::vector<std::string> more) {
    more.insert(more.begin(), "keys");
    std::vector<std::string> recorded = recorded_arguments(more).words;
    recorded.erase(recorded.begin());
    return recorded;
  };
  const auto digest = [](const char* text) { return "sha256:" + sha256_hex(text); };
  const std::string hex(64, 'a');
  for (const char* const secret : {"fiel:hunter2", "pass:hunter2", "env=hunter2", "hunter2",
                                   "passphrase:hunter2", "pkcs11:token=t;object=o?pin=4711"}) {
    EXPECT_THAT(words({"add", "--key", secret}), ElementsAre("add", "--key", digest(secret)));
    EXPECT_THAT(words({std::string("--to=") + secret}), ElementsAre("--to=" + digest(secret)));
    EXPECT_THAT(words({"-key", secret}), ElementsAre("-key", digest(secret)));
    EXPECT_THAT(words({"--key", "--to", secret}), ElementsAre("--key", "--to", digest(secret)));
    EXPECT_THAT(words({std::string("encryption.keys=[file:a, ") + secret + "]"}),
                ElementsAre("encryption.keys=" +
                            digest((std::string("[file:a, ") + secret + "]").c_str())));
  }
  for (const char* const known : {"file:a.key", "passphrase-file:/a", "passphrase:", "keyring:k",
                                  "pkcs11:token=t;object=o", "/etc/passwd"}) {
    EXPECT_THAT(words({"--key", known, "--json"}), ElementsAre("--key", known, "--json"));
    EXPECT_THAT(words({std::string("--to=") + known}), ElementsAre(std::string("--to=") + known));
  }
  EXPECT_THAT(words({"--key", "", "encryption.keys=[]"}),
              ElementsAre("--key", "", "encryption.keys=[]"));
  EXPECT_THAT(words({"pkcs11:token=11?pin-value=11"}),
              ElementsAre("pkcs11:token=11?pin-value=" + digest("11")));
}

TEST(AuditTrail, RecordsTheDigestOfTheValueOfAnUnknownOption) {
  const OptionNames known = {"--help", "-h", "--key", "--out", "-k", "--token"};
  const auto words = [&](const std::vector<std::string>& more) {
    return recorded_arguments(more, known).words;
  };
  const std::string digest = "sha256:" + sha256_hex("hunter2");
  for (const char* const option : {"--pin", "--ky", "--kye", "--kEY", "--sing", "--passphrase"}) {
    EXPECT_THAT(words({"data", "decrypt", "d", option, "hunter2"}),
                ElementsAre("data", "decrypt", "d", option, digest));
    EXPECT_THAT(words({"log", std::string(option) + "=hunter2"}),
                ElementsAre("log", std::string(option) + "=" + digest));
    EXPECT_THAT(words({option, "--out", "new"}), ElementsAre(option, "--out", "new"));
  }
  EXPECT_THAT(words({"--key=", "hunter2"}), ElementsAre("--key=", digest));
  EXPECT_THAT(words({"-khunter2"}), ElementsAre("-k" + digest));
  EXPECT_THAT(words({"--key", "a", "hunter2"}),
              ElementsAre("--key", "sha256:" + sha256_hex("a"), digest));
  EXPECT_THAT(words({"--key", "file:a", "new", "--out", "new", "-1"}),
              ElementsAre("--key", "file:a", "new", "--out", "new", "-1"));
}

TEST(AuditTrail, RecordsAStartAndOneEnd) {
  const TempFolder folder;
  const std::filesystem::path log = folder.path() / "log";
  AuditTrail trail;
  trail.begin({log, ""}, "data pack", nlohmann::ordered_json::object());
  EXPECT_TRUE(trail.is_active());
  trail.end(77, "policy", "no");
  trail.end(0);
  EXPECT_THAT(events_of(log), ElementsAre("log.created", "data.pack.start", "data.pack.refused"));
  EXPECT_THAT(read_file(log), HasSubstr(R"("code":77,"kind":"policy","message":"no")"));
}

TEST(AuditTrail, RecordsOnlyCommandsThatTouchDataOrModels) {
  const TempFolder folder;
  const std::string log = (folder.path() / "log").string();
  const std::string variable = "TRIREME_AUDIT__LOG=" + log;
  const char* const environment[] = {variable.c_str(), nullptr};
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"plan"}, {"data", "ls"}, {"eval", "--help"}, {"data"}}) {
    AuditTrail trail;
    trail.begin_if_audited(words, environment);
    EXPECT_FALSE(trail.is_active());
  }
  AuditTrail trail;
  trail.begin_if_audited({"ckpt", "prune", "x"}, environment);
  EXPECT_THAT(events_of(log), ElementsAre("log.created", "ckpt.prune.start"));
}

TEST(AuditTrail, AStartThatCannotBeRecordedThrowsAndALaterEventWarns) {
  const TempFolder folder;
  const std::filesystem::path log = folder.path() / "log";
  AuditTrail refused;
  EXPECT_THROW(
      refused.begin({folder.path() / "none/log", ""}, "eval", nlohmann::ordered_json::object()),
      NotFound);
  EXPECT_FALSE(refused.is_active());
  AuditTrail trail;
  trail.begin({log, ""}, "eval", nlohmann::ordered_json::object());
  write_file_durably(log, "damaged\n");
  testing::internal::CaptureStderr();
  trail.note("checkpoint.saved", nlohmann::ordered_json::object());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("the event checkpoint.saved is missing from the audit log"));
}

TEST(AuditTrail, WarnsOfALogWhoseEndWasChanged) {
  const TempFolder folder;
  const std::filesystem::path log = folder.path() / "log";
  AuditTrail before;
  before.begin({log, ""}, "eval", nlohmann::ordered_json::object());
  before.end(0);
  const std::string text = read_file(log);
  write_file_durably(log, text + text.substr(text.rfind("{\"seq\"")));
  testing::internal::CaptureStderr();
  AuditTrail trail;
  trail.begin({log, ""}, "eval", nlohmann::ordered_json::object());
  trail.end(0);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_THAT(told, HasSubstr("its last line does not continue the one before it"));
  EXPECT_EQ(told.find("warning"), told.rfind("warning"));
}

TEST(AuditTrail, RecordsNothingWithoutALog) {
  AuditTrail trail;
  trail.begin({"", "/no/such/key"}, "eval", nlohmann::ordered_json::object());
  EXPECT_FALSE(trail.is_active());
  testing::internal::CaptureStderr();
  trail.note("checkpoint.saved", nlohmann::ordered_json::object());
  trail.end(0);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), IsEmpty());
}

}  // namespace
}  // namespace trireme
