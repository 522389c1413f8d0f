// `trireme registry` as people and scripts use it: what it prints, what it refuses, and which exit
// code each refusal has.
#include "src/app/registry/registry_command.h"

#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "src/base/digest.h"
#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/app/records/policy_site.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;
using Words = std::vector<std::string>;

class RegistryCommand : public testing::Test {
 protected:
  RegistryCommand() {
    for (const std::int64_t step : {20, 40}) {
      save_labelled(path("checkpoints"), step, {"classification=internal"});
    }
    fs::create_directory(path("exported"));
    write("exported/config.json", "{}");
    write("exported/model.safetensors", "weights");
  }
  // words: those after `trireme registry`, without --registry.
  CommandRun registry(Words words) {
    words.insert(words.begin(), "registry");
    words.insert(words.begin() + 2, {"--registry", path("registry")});
    return run_command_line(
        [this](CommandLine& app, int& exit_code) {
          add_registry_command(
              app, [this]() -> const Access& { return access_; }, exit_code);
        },
        words);
  }
  // Expects that the command ends well, and returns what it has printed.
  std::string done(const Words& words) {
    const CommandRun run = registry(words);
    EXPECT_EQ(run.code, 0) << run.err;
    return run.out;
  }
  void refused(const Words& words, ExitCode code, const std::string& why) {
    const CommandRun run = registry(words);
    EXPECT_EQ(run.code, static_cast<int>(code)) << run.out;
    EXPECT_THAT(run.out + run.err, HasSubstr(why));
  }
  // Returns what `list --json` says of these versions: "chat 2 production,staging".
  Words listed(Words words) {
    words.insert(words.begin(), {"list", "--json"});
    Words lines;
    const json document = json::parse(done(words));
    EXPECT_EQ(document.at("schema"), 1);
    for (const json& version : document.at("versions")) {
      std::string line = version.at("model").get<std::string>() + " " +
                         std::to_string(version.at("version").get<int>());
      for (const json& stage : version.at("stages")) {
        line += " " + stage.get<std::string>();
      }
      lines.push_back(line);
    }
    return lines;
  }
  // Writes what `trireme eval -J` writes about a step, and returns the name of the file.
  std::string evaluation(std::int64_t step, double loss, const json& gates_met = nullptr) {
    json document = {
        {"schema", 2},        {"step", step}, {"manifest_sha256", manifest_digest(step)},
        {"weights", "plain"}, {"loss", loss}, {"tasks", {{"law", {{"acc", 0.5}}}}}};
    if (!gates_met.is_null()) {
      document["gates_met"] = gates_met;
    }
    write("eval.json", document.dump());
    return path("eval.json");
  }
  std::string manifest_digest(std::int64_t number) const {
    return sha256_hex(read_file(step(number) + "/manifest.json"));
  }
  std::string step(std::int64_t number) const {
    return path("checkpoints/step-000000" + std::to_string(number));
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  TempFolder folder_;
  Access access_;
};

TEST_F(RegistryCommand, AddSaysWhatItHasRecorded) {
  const std::string out = done({"add", "chat", path("checkpoints"), "--note", "more law",
                                "--result", evaluation(40, 2.5, true)});
  const std::string manifest = read_file(step(40) + "/manifest.json");
  EXPECT_THAT(out, StartsWith("chat 1\npath       " + step(40) + "\n"));
  EXPECT_THAT(out, HasSubstr("manifest   sha256:" + sha256_hex(manifest) + "\nstep       40\n"));
  EXPECT_THAT(out, AllOf(HasSubstr("label      internal"), HasSubstr("note       more law\n")));
  EXPECT_THAT(out, AllOf(HasSubstr("figure     loss 2.5\n"),
                         HasSubstr("figure     tasks.law.acc 0.5"), HasSubstr("gates      met\n")));
  EXPECT_EQ(done({"show", "chat"}), out) << "show prints what was added";
}

TEST_F(RegistryCommand, AnExportedModelHasNoStep) {
  const std::string out = done({"add", "chat", path("exported")});
  EXPECT_THAT(out, AllOf(HasSubstr("files      sha256:"), Not(HasSubstr("\nstep "))));
  EXPECT_THAT(out, AllOf(Not(HasSubstr("gates")), Not(HasSubstr("note"))));
  EXPECT_THAT(done({"list"}), HasSubstr("       - " + path("exported") + "\n"));
}

TEST_F(RegistryCommand, VersionsAreNumberedPerModelAndListedInOrder) {
  EXPECT_THAT(done({"add", "chat", step(20)}), StartsWith("chat 1\n"));
  EXPECT_THAT(done({"add", "law", step(20)}), StartsWith("law 1\n"));
  EXPECT_THAT(done({"add", "chat", step(40)}), StartsWith("chat 2\n"));
  done({"promote", "chat:1", "--stage", "staging"});
  done({"promote", "chat:1", "--stage", "production"});
  done({"promote", "law", "--stage", "production"});
  EXPECT_THAT(listed({}), ElementsAre("chat 1 production staging", "chat 2", "law 1 production"));
  EXPECT_THAT(listed({"chat"}), ElementsAre("chat 1 production staging", "chat 2"));
  EXPECT_THAT(listed({"--stage", "staging"}), ElementsAre("chat 1 production staging"));
  EXPECT_THAT(listed({"--stage", "nowhere"}), ElementsAre());
  refused({"list", "absent"}, ExitCode::not_found, "has no model absent");
}

// The columns are as wide as what they hold, and their heads stand above them.
TEST_F(RegistryCommand, TheTableIsAligned) {
  done({"add", "a-model-with-a-long-name", step(20)});
  done({"add", "chat", step(40)});
  done({"promote", "chat", "--stage", "production"});
  done({"promote", "chat", "--stage", "staging"});
  std::istringstream lines(done({"list"}));
  std::string head;
  std::getline(lines, head);
  EXPECT_THAT(head, StartsWith("model "));
  int rows = 0;
  for (std::string line; std::getline(lines, line); ++rows) {
    EXPECT_EQ(line.find(path("checkpoints")), head.find("path")) << line;
    const std::size_t version = line.find_first_of("12", line.find(' '));
    EXPECT_EQ(version, head.find("version") + 6) << line;
  }
  EXPECT_EQ(rows, 2);
}

TEST_F(RegistryCommand, FiguresSelectVersions) {
  done({"add", "chat", step(20), "--result", evaluation(20, 3)});
  done({"add", "chat", step(40), "--result", evaluation(40, 2)});
  done({"add", "chat", path("exported")});  // without figures
  EXPECT_THAT(listed({"--where", "loss<3"}), ElementsAre("chat 2"));
  EXPECT_THAT(listed({"--where", "loss<=3"}), ElementsAre("chat 1", "chat 2"));
  EXPECT_THAT(listed({"--where", "loss>2"}), ElementsAre("chat 1"));
  EXPECT_THAT(listed({"--where", "loss>=2", "--where", "loss<2.5"}), ElementsAre("chat 2"));
  EXPECT_THAT(listed({"--where", "tasks.law.acc=0.5"}), ElementsAre("chat 1", "chat 2"));
  refused({"list", "--where", "loss"}, ExitCode::usage, "loss");
}

TEST_F(RegistryCommand, AReferenceNamesAVersionOrAStage) {
  done({"add", "chat", step(20)});
  done({"add", "chat", step(40)});
  done({"promote", "chat:1", "--stage", "production"});
  EXPECT_EQ(done({"path", "chat"}), step(40) + "\n") << "the newest";
  EXPECT_EQ(done({"path", "chat:1"}), step(20) + "\n");
  EXPECT_EQ(done({"path", "chat@production"}), step(20) + "\n");
  refused({"path", "chat:3"}, ExitCode::not_found, "no version 3; the newest is 2");
  refused({"path", "chat:0"}, ExitCode::usage, "a version is a number from 1");
  refused({"path", "chat@staging"}, ExitCode::not_found,
          "no version at the stage staging; put one there with `trireme registry promote chat");
  refused({"path", "law"}, ExitCode::not_found, "has no model law");
}

TEST_F(RegistryCommand, ARollbackGoesBackOneVersionAtATime) {
  done({"add", "chat", step(20)});
  done({"add", "chat", step(40)});
  done({"add", "chat", path("exported")});
  for (const char* const version : {"chat:1", "chat:2", "chat:3"}) {
    EXPECT_THAT(done({"promote", version, "--stage", "production", "--reason", "newer"}),
                HasSubstr(std::string("promoted version ") + version[5] + ": newer\n"));
  }
  EXPECT_THAT(done({"rollback", "chat", "--stage", "production", "--reason", "slow"}),
              HasSubstr("rolled back to version 2: slow\n"));
  EXPECT_THAT(done({"rollback", "chat", "--stage", "production"}),
              HasSubstr("rolled back to version 1\n"));
  refused({"rollback", "chat", "--stage", "production"}, ExitCode::not_found,
          "has had no version before 1");
  refused({"rollback", "chat", "--stage", "staging"}, ExitCode::not_found,
          "has had no version before 1");
  const json shown = json::parse(done({"show", "chat", "--json"}));
  EXPECT_EQ(shown.at("changes").size(), 5U);
  EXPECT_EQ(shown.at("changes").at(3).at("action"), "rollback");
  EXPECT_EQ(shown.at("changes").at(3).at("reason"), "slow");
}

TEST_F(RegistryCommand, GatesDecideWhatIsPromoted) {
  done({"add", "chat", step(40)});
  const Words promote = {"promote", "chat", "--stage", "production", "--result"};
  const auto with = [&](const std::string& result) {
    Words words = promote;
    words.push_back(result);
    return words;
  };
  refused(with(evaluation(40, 9, false)), ExitCode::below_threshold, "version 1 stays where it is");
  refused(with(evaluation(40, 1)), ExitCode::usage, "no gates have judged it");
  refused(with(evaluation(20, 1, true)), ExitCode::bad_data, "it is of other weights, those of");
  refused(with(path("absent.json")), ExitCode::not_found, "absent.json");
  write("eval.json", "{\"step\": \"forty\"}");
  refused(with(path("eval.json")), ExitCode::bad_data, "eval.json");
  EXPECT_THAT(listed({}), ElementsAre("chat 1")) << "nothing has come into use";
  done(with(evaluation(40, 1, true)));
  EXPECT_THAT(listed({}), ElementsAre("chat 1 production"));
}

// All imported models are of step 0, and a run may save the same step with other weights.
TEST_F(RegistryCommand, AResultIsOfTheWeightsThatItJudged) {
  const std::string other = path("other/step-00000040");
  save_labelled(path("other"), 40, {"classification=public"});
  const std::string result = evaluation(40, 1, true);
  refused({"add", "chat", other, "--result", result}, ExitCode::bad_data, manifest_digest(40));
  done({"add", "chat", other});
  refused({"promote", "chat", "--stage", "production", "--result", result}, ExitCode::bad_data,
          "it is of other weights");
  json average = json::parse(read_file(result));
  average["weights"] = "average";
  write("average.json", average.dump());
  refused({"add", "chat", step(40), "--result", path("average.json")}, ExitCode::bad_data,
          "it judges other weights of the checkpoint: 'average', not 'plain'");
  json old = json::parse(read_file(result));
  old.erase("manifest_sha256");
  write("old.json", old.dump());
  done({"add", "chat", step(40)});
  refused({"promote", "chat", "--stage", "production", "--result", path("old.json")},
          ExitCode::bad_data, "evaluate the checkpoint again");
  EXPECT_THAT(listed({"--stage", "production"}), ElementsAre());
  done({"promote", "chat", "--stage", "production", "--result", result});
}

TEST_F(RegistryCommand, AVersionThatMissedItsGatesIsPromotedOnRequestOnly) {
  done({"add", "chat", step(40), "--result", evaluation(40, 9, false)});
  const Words promote = {"promote", "chat", "--stage", "production"};
  refused(promote, ExitCode::below_threshold, "the result with which it was added");
  EXPECT_THAT(listed({"--stage", "production"}), ElementsAre());
  EXPECT_THAT(done({"promote", "chat", "--stage", "production", "--despite-gates"}),
              HasSubstr("promoted version 1 despite its gates"));
  done({"promote", "chat", "--stage", "staging", "--result", evaluation(40, 1, true)});
  const json changes = json::parse(done({"show", "chat", "--json"})).at("changes");
  EXPECT_EQ(changes.at(0).at("despite_gates"), true);
  EXPECT_EQ(changes.at(0).at("sha256"), manifest_digest(40));
  EXPECT_FALSE(changes.at(1).contains("despite_gates"));
}

TEST_F(RegistryCommand, AChangedShardDoesNotComeIntoUse) {
  done({"add", "chat", step(20)});
  const std::string shard = step(20) + "/shard-00000.safetensors";
  std::string bytes = read_file(shard);
  bytes.back() ^= 1;
  std::ofstream(shard) << bytes;
  refused({"check"}, ExitCode::bad_data, "has changed since it was added");
  refused({"promote", "chat", "--stage", "production"}, ExitCode::bad_data, "shard-00000");
  done({"check", "--quick"});
  done({"promote", "chat", "--stage", "production", "--quick"});
}

TEST_F(RegistryCommand, CheckNamesChangesThatMeanNothing) {
  done({"add", "chat", step(20)});
  done({"promote", "chat", "--stage", "production"});
  write("registry/models/chat/changes/002.json", "{}");
  refused({"check"}, ExitCode::bad_data, "002.json has no name of a record");
}

TEST_F(RegistryCommand, FilesThatHaveChangedDoNotComeIntoUse) {
  done({"add", "chat", step(20)});
  done({"add", "chat", path("exported")});
  done({"promote", "chat:1", "--stage", "production"});
  done({"promote", "chat:2", "--stage", "production"});
  EXPECT_EQ(done({"check"}), "2 versions unchanged\n");
  write("exported/model.safetensors", "wEights");
  refused({"promote", "chat:2", "--stage", "staging"}, ExitCode::bad_data, "has changed");
  refused({"path", "chat:2"}, ExitCode::bad_data, "has changed");
  EXPECT_EQ(done({"path", "chat:2", "--unchecked"}), path("exported") + "\n");
  refused({"check"}, ExitCode::bad_data, "chat 2: ");
  fs::remove_all(step(20));
  refused({"rollback", "chat", "--stage", "production"}, ExitCode::not_found, step(20));
  EXPECT_THAT(listed({"--stage", "production"}), ElementsAre("chat 2 production"));
  refused({"check"}, ExitCode::bad_data, "0 versions unchanged");
  refused({"check", "law"}, ExitCode::not_found, "has no model law");
}

TEST_F(RegistryCommand, NothingIsMadeForWhatIsRefused) {
  refused({"list"}, ExitCode::not_found, "is no registry");
  refused({"add", "Chat", step(20)}, ExitCode::usage, "the model");
  refused({"add", "../chat", step(20)}, ExitCode::usage, "the model");
  refused({"add", "chat", path("absent")}, ExitCode::not_found, "absent");
  refused({"add", "chat", step(20), "--result", evaluation(40, 1)}, ExitCode::bad_data,
          "it is of other weights, those of step 40");
  refused({"add", "chat", path("exported"), "--result", evaluation(40, 1)}, ExitCode::usage,
          "judges checkpoints");
  EXPECT_FALSE(fs::exists(path("registry")));
  write("mine.txt", "mine");
  const CommandRun run = run_command_line(
      [this](CommandLine& app, int& exit_code) {
        add_registry_command(
            app, [this]() -> const Access& { return access_; }, exit_code);
      },
      {"registry", "add", "--registry", folder_.path().string(), "chat", step(20)});
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(run.err, HasSubstr("holds something, but no registry"));
}

TEST_F(RegistryCommand, ADamagedRecordIsNamedAndTheOthersAreListed) {
  done({"add", "chat", step(20)});
  done({"add", "chat", step(40)});
  const std::string record = path("registry/models/chat/versions/1.json");
  fs::permissions(record, fs::perms::owner_all);
  std::ofstream(record) << "{";
  const CommandRun run = registry({"list"});
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(run.err, HasSubstr("versions/1.json"));
  EXPECT_THAT(run.out, AllOf(HasSubstr(step(40)), Not(HasSubstr(step(20)))));
  refused({"check"}, ExitCode::bad_data, "1 version unchanged");
}

// Names from files of others must not send control sequences to the terminal.
TEST_F(RegistryCommand, PrintsNoControlCharacters) {
  done({"add", "chat", step(20), "--note", "a\x1b[2J\nb"});
  EXPECT_THAT(done({"show", "chat"}), AllOf(Not(HasSubstr("\x1b")), HasSubstr("note ")));
  done({"promote", "chat", "--stage", "production", "--reason", "c\x1b[2J"});
  EXPECT_THAT(done({"show", "chat"}), Not(HasSubstr("\x1b")));
}

TEST_F(RegistryCommand, ThePolicyDecidesWhoMayReadAModel) {
  const PolicySite site;
  if (!site.is_possible()) {
    GTEST_SKIP() << "needs root to make a policy";
  }
  done({"add", "chat", step(20)});
  done({"add", "chat", step(40)});
  done({"promote", "chat:1", "--stage", "production"});
  done({"promote", "chat:2", "--stage", "production"});
  access_ =
      site.access("roles:\n  trainer: {groups: [root], read: {highest: public, folders: [/]}}\n");
  for (const Words& words : {Words{"add", "chat", step(20)}, Words{"path", "chat"},
                             Words{"promote", "chat:1", "--stage", "staging"},
                             Words{"rollback", "chat", "--stage", "production"}, Words{"check"}}) {
    EXPECT_EQ(registry(words).code, static_cast<int>(ExitCode::refused)) << words.front();
  }
  EXPECT_THAT(listed({"--stage", "production"}), ElementsAre("chat 2 production"));
}

}  // namespace
}  // namespace trireme
