// `trireme audit`: keys, signed lists, and logs that were changed, cut or signed by others.
#include "src/app/evidence/audit_command.h"

#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "src/base/file.h"
#include "src/evidence/audit_log.h"
#include "tests/app/command_run.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class AuditCommand : public testing::Test {
 protected:
  static CommandRun audit(Words words) {
    words.insert(words.begin(), "audit");
    return run_command_line(
        [](CommandLine& app, int& exit_code) { add_audit_command(app, exit_code); }, words);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  // Makes a key pair NAME and NAME.pub.
  std::string key(const std::string& name) const {
    EXPECT_EQ(audit({"keygen", "--out", path(name), "--name", name + "'s key"}).code, 0);
    return path(name);
  }
  // Writes a log of four events after that of its creation, signed if there is a key.
  void write_log(const std::string& key_file = "") const {
    std::optional<SigningKey> own;
    if (!key_file.empty()) {
      own = SigningKey::load(key_file);
    }
    AuditLog log(path("log"), std::move(own));
    log.append("train.start", {{"config", "a.yaml"}});
    log.append("checkpoint.saved", {{"step", 10}});
    log.append("checkpoint.saved", {{"step", 20}});
    log.append("train.end", {{"code", 0}});
  }
  void change_log(const std::string& from, const std::string& to) const {
    std::string text = read_file(path("log"));
    text.replace(text.find(from), from.size(), to);
    std::ofstream(path("log"), std::ios::binary) << text;
  }

  TempFolder folder_;
};

TEST_F(AuditCommand, KeygenNeverOverwrites) {
  const std::string file = key("site");
  EXPECT_THAT(read_file(file + ".pub"), testing::StartsWith("# site's key\n"));
  const std::string before = read_file(file);
  EXPECT_EQ(audit({"keygen", "--out", file}).code, static_cast<int>(ExitCode::refused));
  EXPECT_EQ(read_file(file), before);
  std::filesystem::remove(file);
  EXPECT_EQ(audit({"keygen", "--out", file}).code, static_cast<int>(ExitCode::refused))
      << "the public key alone is there";
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(AuditCommand, KeygenChecksItsWords) {
  EXPECT_THAT(audit({"keygen", "--out", path("k"), "--name", "a\nb"}).err,
              HasSubstr("--name must be one line"));
  EXPECT_THAT(
      audit({"keygen", "--out", path("k"), "--pkcs11", "pkcs11:object=a", "--algorithm", "ed25519"})
          .err,
      HasSubstr("keys in tokens are always of ECDSA"));
  EXPECT_FALSE(std::filesystem::exists(path("k")));
}

TEST_F(AuditCommand, ShowPrintsTheEventsThatAreAskedFor) {
  write_log(key("site"));
  const std::string all = audit({"show", path("log")}).out;
  EXPECT_THAT(all, AllOf(HasSubstr("train.start"), HasSubstr("config=a.yaml"),
                         HasSubstr("train.end"), HasSubstr("step=20")));
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 5) << "signatures are left out:\n" << all;
  const std::string some = audit({"show", path("log"), "--event", "checkpoint"}).out;
  EXPECT_EQ(std::count(some.begin(), some.end(), '\n'), 2);
  EXPECT_THAT(some, Not(HasSubstr("train")));
  const std::string last = audit({"show", path("log"), "--event", "checkpoint", "-n", "1"}).out;
  EXPECT_THAT(last, AllOf(HasSubstr("step=20"), Not(HasSubstr("step=10"))));
  const std::string raw = audit({"show", path("log"), "--json", "-n", "1"}).out;
  EXPECT_EQ(ordered_json::parse(raw)["event"], "train.end");
}

TEST_F(AuditCommand, ShowSurvivesLinesThatNoLogHas) {
  std::ofstream(path("log")) << "torn {\n[1]\n{\"event\": 7, \"details\": 8}\n"
                             << "{\"event\": \"a\", \"details\": {\"x\": \"\\u001b[2J\"}}\n";
  const CommandRun shown = audit({"show", path("log")});
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("(no line of an audit log)"));
  EXPECT_THAT(shown.out, Not(HasSubstr("\x1b"))) << "nothing controls the terminal";
}

TEST_F(AuditCommand, VerifyPrintsAHeadThatLaterLogsMustContain) {
  write_log();
  const CommandRun first = audit({"verify", path("log")});
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("5 lines, each continues the one before it"));
  const std::string head = first.out.substr(first.out.find("head: ") + 6);
  const std::string noted = head.substr(0, head.find('\n'));
  AuditLog(path("log")).append("train.start", {});
  EXPECT_EQ(audit({"verify", path("log"), "--head", noted}).code, 0);
  std::filesystem::remove(path("log"));
  write_log();
  change_log("train.end", "train.fin");  // a log that was written again as another one
  EXPECT_EQ(audit({"verify", path("log"), "--head", noted}).code,
            static_cast<int>(ExitCode::bad_data));
}

TEST_F(AuditCommand, VerifyNamesTheLineThatWasChanged) {
  write_log();
  change_log("\"step\":10", "\"step\":11");
  const CommandRun changed = audit({"verify", path("log")});
  EXPECT_EQ(changed.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(changed.out, HasSubstr(path("log") + ": line 3 "));
  const auto checked = ordered_json::parse(audit({"verify", path("log"), "--json"}).out);
  EXPECT_EQ(checked["faults"][0]["line"], 3);
  EXPECT_EQ(checked["lines"], 5);
}

TEST_F(AuditCommand, VerifyTrustsOnlyTheKeysThatAreGiven) {
  const std::string site = key("site");
  const std::string other = key("other");
  write_log(site);
  const CommandRun good = audit({"verify", path("log"), "--trust", site + ".pub"});
  EXPECT_EQ(good.code, 0) << good.err << good.out;
  EXPECT_THAT(good.out, HasSubstr("signed up to line 10 by site's key"));
  const CommandRun bad = audit({"verify", path("log"), "--trust", other + ".pub"});
  EXPECT_EQ(bad.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(bad.out, HasSubstr("no line is signed by a trusted key"));
  AuditLog(path("log")).append("policy.changed", {});
  const CommandRun late = audit({"verify", path("log"), "--trust", site + ".pub"});
  EXPECT_EQ(late.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(late.out, HasSubstr("not trusted: "));
}

TEST_F(AuditCommand, VerifyRefusesAnEmptyLog) {
  std::ofstream(path("log")).flush();
  const CommandRun empty = audit({"verify", path("log")});
  EXPECT_EQ(empty.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(empty.err, HasSubstr("the audit log is empty"));
}

TEST_F(AuditCommand, SignsAListOfFiles) {
  const std::string site = key("site");
  std::ofstream(path("SHA256SUMS")) << std::string(64, 'a') << "  notes.txt\n";
  const CommandRun signed_list = audit({"sign", path("SHA256SUMS"), "--key", site});
  EXPECT_EQ(signed_list.code, 0) << signed_list.err;
  EXPECT_TRUE(std::filesystem::exists(path("SHA256SUMS.sig")));
  std::ofstream(path("notes")) << "no digests\n";
  EXPECT_EQ(audit({"sign", path("notes"), "--key", site}).code,
            static_cast<int>(ExitCode::bad_data));
  EXPECT_FALSE(std::filesystem::exists(path("notes.sig")));
}

}  // namespace
}  // namespace trireme
