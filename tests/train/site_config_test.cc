#include <filesystem>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/train/run/run_config.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

class SiteConfig : public testing::Test {
 protected:
  void site(const std::string& yaml) { write_file_durably(folder_.path() / "site.yaml", yaml); }
  std::string refusal() const {
    return message_of<ConfigError>([&] { (void)site_audit_config(nullptr, folder_.path()); });
  }

  TempFolder folder_;
};

TEST_F(SiteConfig, TheLogOfASiteHasAnAbsolutePath) {
  site("audit: {log: /var/log/audit.jsonl, copies: [syslog]}\n");
  const AuditConfig config = site_audit_config(nullptr, folder_.path());
  EXPECT_EQ(config.log, "/var/log/audit.jsonl");
  EXPECT_THAT(config.copies, ElementsAre("syslog"));
  site("\naudit: {log: logs/audit.jsonl}\n");
  EXPECT_THAT(refusal(), AllOf(HasSubstr("site.yaml:2: audit.log: 'logs/audit.jsonl' is a relative "
                                         "path"),
                               HasSubstr("begins with /")));
  const auto run = folder_.path() / "run";
  write_file_durably(run,
                     "model: {preset: gpt2-124m}\ndata: {train: d}\nrun: {dir: r}\n"
                     "train: {steps: 5, global_batch: 8}\n");
  EXPECT_THAT(message_of<ConfigError>([&] {
                (void)load_run_config({.file = run, .arguments = {}, .site = folder_.path()});
              }),
              HasSubstr("'logs/audit.jsonl' is a relative path"));
  // What a user names for one command may be relative.
  const char* const environment[] = {"TRIREME_AUDIT__LOG=audit.jsonl", nullptr};
  EXPECT_EQ(site_audit_config(environment, folder_.path()).log, "audit.jsonl");
}

TEST_F(SiteConfig, AreNotForEverybodyToWrite) {
  site("audit: {log: /var/log/audit.jsonl}\n");
  const fs::path file = folder_.path() / "site.yaml";
  const auto told = [&] {
    return message_of<PolicyError>([&] { (void)site_audit_config(nullptr, folder_.path()); });
  };
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  EXPECT_THAT(told(), HasSubstr("site.yaml can be changed by every user of this host"));
  fs::permissions(file, fs::perms::others_write, fs::perm_options::remove);
  fs::permissions(folder_.path(), fs::perms::others_write, fs::perm_options::add);
  EXPECT_THAT(told(), HasSubstr(folder_.path().string() + " can be changed by every user"));
  fs::remove(file);
  EXPECT_EQ(site_audit_config(nullptr, folder_.path()).log, "");  // nothing is read there
}

TEST_F(SiteConfig, RefusesWhatIsMistyped) {
  site("model: {preset: gpt2-124m}\nparallel: auto\naudit: {lgo: /var/log/audit.jsonl}\n");
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("site.yaml:3: audit.lgo: unknown key"), HasSubstr("audit.log?")));
  site("encription: {keys: file:/etc/site.key}\n");
  const auto told = [&] {
    return message_of<ConfigError>([&] { (void)site_encryption_config(nullptr, folder_.path()); });
  };
  EXPECT_THAT(told(), HasSubstr("site.yaml:1: encription.keys: unknown key"));
  site("encryption: {keys: {file: /etc/site.key}}\n");
  EXPECT_THAT(told(), HasSubstr("encryption.keys"));
  site("encryption: {accept_plain: maybe}\n");
  EXPECT_THAT(told(), HasSubstr("encryption.accept_plain: maybe is not allowed"));
  site("audit: {log: [/var/log/audit.jsonl]}\n");
  EXPECT_THAT(refusal(), HasSubstr("audit.log"));
}

}  // namespace
}  // namespace trireme
