// Who can open an encrypted dataset, before and after each subcommand of `trireme keys`.
#include "src/app/keys/keys_command.h"

#include <gmock/gmock.h>

#include "tests/app/command_run.h"
#include "tests/io/data/encrypted_data.h"
#include "tests/support/environment_variables.h"
#include "tests/support/without_policy.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class KeysCommand : public EncryptedDataTest {
 protected:
  void SetUp() override {
    variables_.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
    write("in/a.txt", "what only some may read");
    pack(sealed_options("in", "sealed"), {});
  }
  static CommandRun keys(Words words) {
    words.insert(words.begin(), "keys");
    return run_command_line([](CommandLine& app, int&) { add_keys_command(app, without_policy()); },
                            words);
  }
  nlohmann::json listed() const {
    return nlohmann::json::parse(keys({"list", sealed_, "--json"}).out);
  }
  bool opens(const std::string& uri) const { return fault_of(sealed_, KeyRing({uri})).empty(); }

  EnvironmentVariables variables_;
  const std::string sealed_ = (folder_ / "sealed").string();
  const std::string other_ = new_key(folder_, "other");
};

TEST_F(KeysCommand, CreateWritesAKeyThatOnlyItsOwnerCanRead) {
  const fs::path file = folder_ / "new.key";
  const CommandRun made = keys({"create", "--out", file.string(), "--name", "Site A"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("identity: " + KeyFile::load(file)->id()));
  EXPECT_EQ(fs::status(file).permissions() & (fs::perms::group_all | fs::perms::others_all),
            fs::perms::none);
  const std::string before = read_file(file);
  EXPECT_NE(keys({"create", "--out", file.string()}).code, 0) << "a key is never overwritten";
  EXPECT_EQ(read_file(file), before);
}

TEST_F(KeysCommand, CreateWantsOnePlaceAndOneLine) {
  const std::string file = (folder_ / "x.key").string();
  for (const auto& [words, why] : std::vector<std::pair<Words, std::string>>{
           {{"create"}, "choose one of --out FILE and --pkcs11 URI"},
           {{"create", "--out", file, "--pkcs11", "pkcs11:object=a"}, "choose one of"},
           {{"create", "--out", file, "--name", "a\nb"}, "--name must be one line"},
           {{"create", "--pkcs11", "pkcs11:object=a", "--name", "b"}, "--name is for key files"}}) {
    const CommandRun run = keys(words);
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage)) << why;
    EXPECT_THAT(run.err, HasSubstr(why));
  }
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(KeysCommand, ListNamesTheRecipientsAndSaysWhetherItChecked) {
  const CommandRun unchecked = keys({"list", sealed_});
  EXPECT_THAT(unchecked.out, AllOf(HasSubstr(sealed_), HasSubstr("site"),
                                   HasSubstr("With --key, it is also checked")));
  const nlohmann::json found = listed();
  EXPECT_EQ(found["checked"], false);
  EXPECT_TRUE(found["checkpoints"].empty());
  ASSERT_EQ(found["datasets"].size(), 1U);
  const nlohmann::json& recipients = found["datasets"][0]["recipients"];
  ASSERT_EQ(recipients.size(), 1U);
  EXPECT_EQ(recipients[0]["name"], "site");
  EXPECT_EQ(recipients[0]["revoked"], false);
  const CommandRun checked = keys({"list", sealed_, "--key", uri_, "--json"});
  EXPECT_EQ(nlohmann::json::parse(checked.out)["checked"], true) << checked.err;
  const CommandRun stranger = keys({"list", sealed_, "--key", other_});
  EXPECT_EQ(stranger.code, static_cast<int>(ExitCode::refused)) << stranger.err;
}

TEST_F(KeysCommand, ListNoticesARecipientThatWasAddedByHand) {
  const fs::path file = folder_ / "sealed/keys.json";
  nlohmann::ordered_json text = json_of(file);
  text["recipients"][0]["name"] = "somebody else";
  put(file, text.dump());
  EXPECT_NE(keys({"list", sealed_, "--key", uri_}).code, 0);
}

TEST_F(KeysCommand, AddLetsAnotherKeyOpenIt) {
  EXPECT_FALSE(opens(other_));
  EXPECT_EQ(keys({"add", sealed_, "--key", other_, "--to", other_}).code,
            static_cast<int>(ExitCode::refused))
      << "only a recipient can add another one";
  const CommandRun added = keys({"add", sealed_, "--key", uri_, "--to", other_});
  EXPECT_EQ(added.code, 0) << added.err;
  EXPECT_THAT(added.out, AllOf(HasSubstr("site"), HasSubstr("other")));
  EXPECT_TRUE(opens(other_));
  EXPECT_TRUE(opens(uri_));
  EXPECT_EQ(keys({"add", sealed_, "--key", uri_, "--to", other_}).code, 0);
  EXPECT_EQ(listed()["datasets"][0]["recipients"].size(), 2U) << "no key is listed twice";
}

TEST_F(KeysCommand, RotateLeavesTheNewKeyAlone) {
  EXPECT_EQ(keys({"rotate", sealed_, "--key", uri_, "--to", other_}).code, 0);
  EXPECT_TRUE(opens(other_));
  EXPECT_FALSE(opens(uri_));
}

TEST_F(KeysCommand, RemoveTakesOneKeyButNeverTheLast) {
  const std::string id = listed()["datasets"][0]["recipients"][0]["key"];
  const CommandRun last = keys({"remove", sealed_, "--key", uri_, "--recipient", id});
  EXPECT_EQ(last.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(last.err, HasSubstr("would remove the last recipient"));
  ASSERT_EQ(keys({"add", sealed_, "--key", uri_, "--to", other_}).code, 0);
  const CommandRun unknown = keys({"remove", sealed_, "--key", uri_, "--recipient", "00ff"});
  EXPECT_EQ(unknown.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(unknown.err, HasSubstr("'00ff'"));
  EXPECT_EQ(keys({"remove", sealed_, "--key", uri_, "--recipient", id}).code, 0);
  EXPECT_FALSE(opens(uri_));
  EXPECT_TRUE(opens(other_));
}

TEST_F(KeysCommand, DestroyAsksTwiceAndLeavesNobody) {
  for (const Words& words : {Words{"destroy", sealed_, "--confirm", "sealed"},
                             Words{"destroy", sealed_, "--confirm", "sealed", "--confirm", "x"}}) {
    const CommandRun refused = keys(words);
    EXPECT_EQ(refused.code, static_cast<int>(ExitCode::refused));
    EXPECT_THAT(refused.err, HasSubstr("nothing was destroyed"));
    EXPECT_TRUE(opens(uri_));
  }
  const std::string wrapped = listed()["datasets"][0]["data_key"];
  const CommandRun done =
      keys({"destroy", sealed_ + "/", "--confirm", "sealed", "--confirm", "sealed"});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.err, HasSubstr("unreadable for everyone"));
  EXPECT_FALSE(opens(uri_));
  EXPECT_THAT(keys({"list", sealed_}).out, HasSubstr("nobody: the key was destroyed"));
  const CommandRun later = keys({"add", sealed_, "--key", uri_, "--to", other_});
  EXPECT_THAT(later.out, HasSubstr("left as it is, because its key was destroyed"));
  EXPECT_FALSE(opens(other_));
}

TEST_F(KeysCommand, WhatIsNotEncryptedHasNoRecipients) {
  pack(options("in", "plain"), {});
  const CommandRun plain = keys({"list", (folder_ / "plain").string()});
  EXPECT_EQ(plain.code, static_cast<int>(ExitCode::usage)) << plain.err;
  const CommandRun nothing = keys({"list", (folder_ / "in").string()});
  EXPECT_EQ(nothing.code, static_cast<int>(ExitCode::not_found)) << nothing.err;
  EXPECT_THAT(nothing.out, Not(HasSubstr("site")));
}

}  // namespace
}  // namespace trireme
