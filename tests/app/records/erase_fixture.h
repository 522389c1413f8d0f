// A dataset that is erased, the key that signs the certificate, and what an interrupted command
// leaves.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "src/app/evidence/certificate_file.h"
#include "src/app/evidence/erase_command.h"
#include "src/app/evidence/erase_plan.h"
#include "src/app/evidence/verify_command.h"
#include "src/evidence/certificate.h"
#include "tests/app/command_run.h"
#include "tests/io/data/encrypted_data.h"
#include "tests/support/environment_variables.h"
#include "tests/support/without_policy.h"

namespace trireme {

class EraseFixture : public EncryptedDataTest {
 protected:
  using Words = std::vector<std::string>;

  void SetUp() override {
    variables_.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
    key_.save(path("sign.key"));
    put(path("trust.pem"), "# Site A\n" + key_.public_key().to_pem());
    write("in/a.txt", "what shall be forgotten");
    pack(options("in", "set"), {});
  }
  CommandRun erase_with(const std::string& name, const Words& more) const {
    Words words = {"erase", path(name), "--certificate", path("gone.json")};
    words.insert(words.end(), more.begin(), more.end());
    AuditTrail audit;
    return run_command_line(
        [&](CommandLine& app, int&) { add_erase_command(app, audit, without_policy()); }, words);
  }
  // Confirms with the last part of the name.
  CommandRun erase_confirmed(const std::string& name, const Words& more = {}) const {
    const std::string word = fs::path(name).filename();
    Words words = {"--sign", path("sign.key"), "--confirm", word, "--confirm", word};
    words.insert(words.end(), more.begin(), more.end());
    return erase_with(name, words);
  }
  CommandRun verify_certificate() const {
    return run_command_line(
        [](CommandLine& app, int& code) { add_verify_command(app, without_policy(), code); },
        {"verify", path("gone.json"), "--trust", path("trust.pem")});
  }
  Erasure erasure() const {
    return parse_certificate(read_file(path("gone.json")), "gone.json", {}).erasure;
  }
  // Expects a refusal that has changed nothing.
  void expect_refused(const CommandRun& run, ExitCode code, const std::string& why) const {
    EXPECT_EQ(run.code, static_cast<int>(code)) << run.err;
    EXPECT_THAT(run.err, testing::HasSubstr(why));
    EXPECT_EQ(fault_of(folder_ / "set", KeyRing(std::vector<std::string>())), "");
    EXPECT_FALSE(fs::exists(path("gone.json"))) << "no certificate is left";
  }
  // Does what the command does before it erases anything.
  static Erasure planned(const ErasePlan& plan) {
    Erasure erasure;
    erasure.kind = plan.kind;
    erasure.uri = file_uri(plan.folder.string());
    erasure.files = digests_of(plan);
    erasure.bytes = plan.bytes;
    erasure.keys = plan.keys;
    erasure.started = "2026-01-02T03:04:05Z";
    return erasure;
  }
  void begin_erasure(const ErasePlan& plan) const {
    CertificateFile(path("gone.json"), key_).begin(planned(plan));
  }
  Words files_below(const std::string& name) const {
    Words files;
    for (const auto& entry : fs::recursive_directory_iterator(path(name))) {
      if (entry.is_regular_file()) {
        files.push_back(entry.path().lexically_relative(path(name)));
      }
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  const SigningKey key_ = SigningKey::generate();
  EnvironmentVariables variables_;
};

}  // namespace trireme
