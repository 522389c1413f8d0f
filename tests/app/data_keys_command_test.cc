// `trireme data` on encrypted, labelled and signed datasets: what each command says with and
// without keys, and what the site decides; `trireme verify` on what it signed.
#include <gmock/gmock.h>

#include "mpi/self_communicator.h"
#include "src/app/data/data_command.h"
#include "src/app/evidence/verify_command.h"
#include "src/evidence/keys.h"
#include "tests/app/command_run.h"
#include "tests/io/data/encrypted_data.h"
#include "tests/support/environment_variables.h"
#include "tests/support/without_policy.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class DataKeysCommand : public EncryptedDataTest {
 protected:
  void SetUp() override {
    fs::create_directories(path("site"));
    variables_.set("TRIREME_SITE_DIR", path("site"));
    write("in/a.txt", "first text\n");
    write("in/b.txt", "second text\n");
  }
  CommandRun data(Words words) {
    words.insert(words.begin(), "data");
    return run_command_line(
        [this](CommandLine& app, int& code) {
          add_data_command(
              app, [this]() -> Communicator& { return self_; }, without_policy(), code);
        },
        words);
  }
  CommandRun pack_set(const Words& more = {}, const std::string& out = "set") {
    Words words = {"pack", path("in"), "--out", path(out)};
    words.insert(words.end(), more.begin(), more.end());
    return data(words);
  }
  CommandRun on_set(const std::string& command, const Words& more = {}) {
    Words words = {command, path("set")};
    words.insert(words.end(), more.begin(), more.end());
    return data(words);
  }
  CommandRun verify_signed(const std::string& name, const Words& more = {}) const {
    Words words = {"verify", path(name), "--trust", path("trust.pem")};
    words.insert(words.end(), more.begin(), more.end());
    return run_command_line(
        [](CommandLine& app, int& code) { add_verify_command(app, without_policy(), code); },
        words);
  }
  // Gives the site a key that signs what is packed.
  void sign_with_site_key() const {
    const SigningKey key = SigningKey::generate();
    key.save(path("sign.key"));
    put(path("trust.pem"), "# Site A\n" + key.public_key().to_pem());
    put(path("site/audit.yaml"), "audit: {key: " + path("sign.key") + "}\n");
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  SelfCommunicator self_;
  EnvironmentVariables variables_;
};

TEST_F(DataKeysCommand, EncryptAndDecryptInPlace) {
  ASSERT_EQ(pack_set().code, 0);
  const std::string digest = json::parse(on_set("info", {"--json"}).out)["digest"];
  const KeyRing nobody(std::vector<std::string>{});
  const CommandRun no_key = on_set("encrypt");
  EXPECT_EQ(no_key.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(no_key.err, HasSubstr("no key was given: name one with --key"));
  const CommandRun done = on_set("encrypt", {"--key", uri_});
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(done.out, AllOf(testing::StartsWith(path("set") + ": encrypted, 1 shard, "),
                              HasSubstr("\n  " + digest + "\n")));
  EXPECT_NE(fault_of(path("set"), nobody), "");
  const json again = json::parse(on_set("encrypt", {"--key", uri_, "--json"}).out);
  EXPECT_EQ(again["was_done"], true);
  EXPECT_EQ(again["encrypted"], true);
  EXPECT_EQ(again["shards"], 1);
  EXPECT_EQ(again["digest"], digest);
  EXPECT_THAT(on_set("encrypt", {"--key", uri_}).out, HasSubstr(": already encrypted, 1 shard"));
  const CommandRun plain = on_set("decrypt", {"--key", uri_});
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_THAT(plain.out, AllOf(HasSubstr(": not encrypted, 1 shard, "), HasSubstr(digest)));
  EXPECT_EQ(fault_of(path("set"), nobody), "");
  EXPECT_FALSE(fs::exists(path("set/keys.json")));
  EXPECT_THAT(on_set("decrypt", {"--key", uri_}).out, HasSubstr(": already not encrypted, "));
}

TEST_F(DataKeysCommand, DecryptNeedsTheKey) {
  ASSERT_EQ(pack_set({"--key", uri_}).code, 0);
  const std::string other = new_key(folder_, "other");
  EXPECT_EQ(on_set("decrypt", {"--key", other}).code, static_cast<int>(ExitCode::refused));
  EXPECT_EQ(on_set("decrypt").code, static_cast<int>(ExitCode::refused));
  EXPECT_EQ(fault_of(path("set"), ring_), "");
}

TEST_F(DataKeysCommand, InfoShowsTheContentsToWhoHasTheKey) {
  ASSERT_EQ(pack_set({"--key", uri_, "--source", "a test"}).code, 0);
  const CommandRun blind = on_set("info");
  EXPECT_EQ(blind.code, 0) << blind.err;
  EXPECT_THAT(blind.out,
              AllOf(HasSubstr("tokens           25 ("), HasSubstr("documents        2\n"),
                    HasSubstr("label            (none)\n"), HasSubstr("source           a test\n"),
                    HasSubstr("encryption       "), HasSubstr(", data key "),
                    HasSubstr("(of the plain data; it needs the key: see --key)"),
                    Not(HasSubstr("entropy"))));
  const json closed = json::parse(on_set("info", {"--json"}).out);
  EXPECT_EQ(closed["encrypted"], true);
  EXPECT_FALSE(closed.contains("digest"));
  EXPECT_TRUE(closed.contains("data_key"));
  EXPECT_FALSE(closed.contains("unigram_entropy_nats"));
  const json open = json::parse(on_set("info", {"--json", "--key", uri_}).out);
  EXPECT_TRUE(open.contains("digest"));
  EXPECT_EQ(open["unigram_entropy_tokens"], 25);
  const json unscanned = json::parse(on_set("info", {"--json", "--key", uri_, "--no-scan"}).out);
  EXPECT_FALSE(unscanned.contains("unigram_entropy_nats"));
  EXPECT_EQ(on_set("info", {"--key", new_key(folder_, "other")}).code,
            static_cast<int>(ExitCode::refused));
}

TEST_F(DataKeysCommand, AKeyForPlainDataIsAMistake) {
  ASSERT_EQ(pack_set().code, 0);
  for (const char* const command : {"info", "verify"}) {
    const CommandRun run = on_set(command, {"--key", uri_});
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused)) << command;
    EXPECT_THAT(run.err, HasSubstr("the dataset is not encrypted, but --key was given"));
  }
  const json info = json::parse(on_set("info", {"--json"}).out);
  EXPECT_FALSE(info.contains("data_key"));
  EXPECT_EQ(info["encrypted"], false);
}

TEST_F(DataKeysCommand, VerifySaysHowFarItCouldLook) {
  ASSERT_EQ(pack_set({"--key", uri_}).code, 0);
  put(path("set/note.txt"), "extra");
  const CommandRun blind = on_set("verify");
  EXPECT_EQ(blind.code, 0) << blind.err;
  EXPECT_THAT(blind.out,
              AllOf(HasSubstr("is not part of the dataset and is never read\n"),
                    HasSubstr(" read: valid; encrypted, and no key was given to open it\n")));
  const CommandRun open = on_set("verify", {"--key", uri_});
  EXPECT_THAT(open.out, HasSubstr("; encrypted, and every block opens\n"));
  const json closed = json::parse(on_set("verify", {"--json"}).out);
  EXPECT_EQ(closed["valid"], true);
  EXPECT_EQ(closed["opened"], false);
  EXPECT_TRUE(closed["digest"].is_null());
  EXPECT_EQ(closed["extra_files"].size(), 1U);
  const json opened = json::parse(on_set("verify", {"--json", "--key", uri_}).out);
  EXPECT_EQ(opened["opened"], true);
  EXPECT_EQ(opened["shards"], 1);
  EXPECT_FALSE(opened["digest"].is_null());
}

TEST_F(DataKeysCommand, VerifyWithoutAKeyNoticesDamagedKeys) {
  ASSERT_EQ(pack_set({"--key", uri_}).code, 0);
  put(path("set/keys.json"), "{");
  EXPECT_EQ(on_set("verify").code, static_cast<int>(ExitCode::bad_data));
  fs::remove(path("set/keys.json"));
  EXPECT_NE(on_set("verify").code, 0);
}

TEST_F(DataKeysCommand, TheSiteEncryptsUnlessTheCommandSaysOtherwise) {
  put(path("site/keys.yaml"), "encryption: {keys: [\"" + uri_ + "\"]}\n");
  ASSERT_EQ(pack_set().code, 0);
  EXPECT_TRUE(json::parse(on_set("info", {"--json"}).out)["encrypted"]);
  EXPECT_TRUE(json::parse(on_set("info", {"--json"}).out).contains("digest"))
      << "the site's keys open it";
  ASSERT_EQ(pack_set({"--plain"}, "plain").code, 0);
  EXPECT_FALSE(fs::exists(path("plain/keys.json")));
  const CommandRun both = pack_set({"--plain", "--key", uri_}, "both");
  EXPECT_EQ(both.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(both.err, HasSubstr("choose one of --key, which encrypts the dataset, and --plain"));
  const std::string other = new_key(folder_, "other");
  ASSERT_EQ(pack_set({"--key", other}, "other").code, 0);
  EXPECT_NE(fault_of(path("other"), ring_), "") << "--key replaces the keys of the site";
  EXPECT_EQ(fault_of(path("other"), KeyRing({other})), "");
}

TEST_F(DataKeysCommand, ListMarksWhatIsEncrypted) {
  ASSERT_EQ(pack_set({"--key", uri_}, "sets/sealed").code, 0);
  ASSERT_EQ(pack_set({}, "sets/plain").code, 0);
  const CommandRun run = data({"ls", path("sets")});
  EXPECT_THAT(run.out, AllOf(HasSubstr(path("sets/sealed") + " (encrypted)\n"),
                             HasSubstr(path("sets/plain") + "\n")));
  const json list = json::parse(data({"ls", path("sets"), "--json"}).out)["datasets"];
  ASSERT_EQ(list.size(), 2U);
  EXPECT_FALSE(list[0]["encrypted"]);
  EXPECT_TRUE(list[0].contains("digest"));
  EXPECT_TRUE(list[1]["encrypted"]);
  EXPECT_FALSE(list[1].contains("digest"));
  EXPECT_EQ(json::parse(data({"ls", path("in"), "--json"}).out)["datasets"].size(), 0U)
      << "an empty list is no error for programs";
}

TEST_F(DataKeysCommand, LabelsAreStoredAndChecked) {
  ASSERT_EQ(pack_set({"--label", "classification=internal", "--label", "owner=health"}).code, 0);
  EXPECT_THAT(on_set("info").out, HasSubstr("label            internal; owner health\n"));
  EXPECT_EQ(json::parse(on_set("info", {"--json"}).out)["label"]["owners"], json{"health"});
  const CommandRun wrong = pack_set({"--label", "colour=red"}, "other");
  EXPECT_EQ(wrong.code, static_cast<int>(ExitCode::usage));
  EXPECT_FALSE(fs::exists(path("other")));
}

TEST_F(DataKeysCommand, StageCopiesOnce) {
  ASSERT_EQ(pack_set({"--key", uri_}).code, 0);
  const CommandRun first = on_set("stage", {path("local")});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, testing::MatchesRegex(".*local: [^,]* staged\n"));
  EXPECT_EQ(fault_of(path("local"), ring_), "");
  EXPECT_THAT(on_set("stage", {path("local")}).out, HasSubstr(", already staged\n"));
  EXPECT_EQ(on_set("stage", {""}).code, static_cast<int>(ExitCode::usage));
}

TEST_F(DataKeysCommand, ASignedDatasetVerifiesToItsFiles) {
  sign_with_site_key();
  ASSERT_EQ(pack_set({"--source", "a test"}).code, 0);
  const CommandRun run = verify_signed("set");
  EXPECT_EQ(run.code, 0) << run.out << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("Everything that was signed was checked and is unchanged: 4 files, "),
                    HasSubstr("It shows who had the key"), HasSubstr("ok  "),
                    HasSubstr("inputs 2 files: 2 as signed, 0 changed, 0 gone\n")));
  const json document = json::parse(verify_signed("set", {"--json"}).out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["code"], 0);
  EXPECT_EQ(document["files"], 4);
  EXPECT_EQ(document["items"][0]["state"], "ok");
  EXPECT_EQ(document["items"][0]["depth"], 0);
  EXPECT_TRUE(document["faults"].empty());
}

TEST_F(DataKeysCommand, VerifyTellsChangedFromGoneFromUntrusted) {
  sign_with_site_key();
  ASSERT_EQ(pack_set().code, 0);
  fs::rename(path("in/a.txt"), path("in/moved.txt"));
  const CommandRun gone = verify_signed("set");
  EXPECT_EQ(gone.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(gone.out, AllOf(HasSubstr("GONE"), HasSubstr("NOT verified: 1 finding; 3 files, ")));
  const CommandRun forgiven = verify_signed("set", {"--allow-missing"});
  EXPECT_EQ(forgiven.code, 0);
  EXPECT_THAT(forgiven.out, HasSubstr("What is here is unchanged: 3 files, "));
  EXPECT_THAT(forgiven.out, HasSubstr(" 1 finding about files that are gone."));
  fs::rename(path("in/moved.txt"), path("in/a.txt"));
  put(path("in/b.txt"), "second TEXT\n");
  const CommandRun changed = verify_signed("set", {"--allow-missing"});
  EXPECT_EQ(changed.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(changed.out, AllOf(HasSubstr("BAD"), HasSubstr("in/b.txt")));
  put(path("in/b.txt"), "second text\n");
  put(path("trust.pem"), SigningKey::generate().public_key().to_pem());
  const CommandRun untrusted = verify_signed("set");
  EXPECT_EQ(untrusted.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(untrusted.out, HasSubstr("UNTRUSTED"));
}

TEST_F(DataKeysCommand, VerifyFindsFoldersThatWereMoved) {
  sign_with_site_key();
  ASSERT_EQ(pack_set().code, 0);
  fs::rename(path("in"), path("archive"));
  EXPECT_EQ(verify_signed("set").code, static_cast<int>(ExitCode::not_found));
  EXPECT_EQ(verify_signed("set", {"--moved", path("in") + "/=" + path("archive") + "//"}).code, 0);
  const CommandRun note = verify_signed(
      "set", {"--moved", path("in") + "=" + path("archive"), "--moved", "/no=/where"});
  EXPECT_EQ(note.code, 0);
  EXPECT_THAT(note.out, HasSubstr("note: "));
  for (const char* const wrong : {"=new", "old=", "old"}) {
    const CommandRun run = verify_signed("set", {"--moved", wrong});
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage)) << wrong;
    EXPECT_THAT(run.err, HasSubstr("expected OLD=NEW, two folders"));
  }
}

TEST_F(DataKeysCommand, OnlyAPackOfItsOwnIsSigned) {
  ASSERT_EQ(pack_set().code, 0);
  sign_with_site_key();
  const CommandRun again = pack_set();
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(again.err, HasSubstr("is not signed, because it was packed before"));
  EXPECT_EQ(verify_signed("set").code, static_cast<int>(ExitCode::refused));
  fs::remove_all(path("set"));
  EXPECT_EQ(pack_set().err.find("not signed"), std::string::npos);
  EXPECT_EQ(pack_set().err.find("not signed"), std::string::npos) << "it has a signature already";
}

TEST_F(DataKeysCommand, TheProvenanceOfEncryptedDataIsPlain) {
  const std::string told = "holds the path and the SHA-256 of each input file in plain";
  EXPECT_THAT(pack_set({"--key", uri_}, "sealed").err, Not(HasSubstr(told)));
  sign_with_site_key();
  EXPECT_THAT(pack_set({}, "plain").err, Not(HasSubstr(told)));
  EXPECT_THAT(pack_set({"--key", uri_}, "signed").err, HasSubstr(told));
  EXPECT_THAT(read_file(path("signed/provenance.intoto.jsonl")), Not(testing::IsEmpty()));
  variables_.set("TRIREME_AUDIT__KEY", "");
  EXPECT_THAT(pack_set({"--key", uri_}, "unsigned").err, Not(HasSubstr(told)));
}

TEST_F(DataKeysCommand, BothPartsOfASplitAreSigned) {
  sign_with_site_key();
  for (int i = 0; i < 40; ++i) {
    write(fmt::format("in/{}.txt", i), fmt::format("document {}\n", i));
  }
  ASSERT_EQ(pack_set({"--validation-fraction", "0.3"}).code, 0);
  EXPECT_EQ(verify_signed("set/train").code, 0);
  EXPECT_EQ(verify_signed("set/validation").code, 0);
}

}  // namespace
}  // namespace trireme
