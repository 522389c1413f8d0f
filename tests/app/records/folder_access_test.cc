// Which folders the policy of a site is asked about before a command reads, changes or erases
// something, and `trireme policy check`, which asks about all that a run would touch.
#include "src/app/access/folder_access.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "src/app/evidence/policy_command.h"
#include "src/base/file.h"
#include "tests/app/command_run.h"
#include "tests/app/records/policy_site.h"
#include "tests/io/data/data_fixture.h"
#include "tests/support/environment_variables.h"
#include "tests/support/without_policy.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

// The policy lets root read what is internal in the folder, write below `out`, and change keys.
class FolderAccess : public DataTest {
 protected:
  void SetUp() override {
    if (!site_.is_possible()) {
      GTEST_SKIP() << "only root can make a policy: run as root";
    }
    variables_.set("TRIREME_SITE_DIR", TRIREME_SOURCE_DIR "/tests/support/no_site");
    access_ = site_.access(
        "unlabelled: allow\nroles:\n  trainer:\n    groups: [root]\n    read: "
        "{highest: internal, folders: [" +
        folder_.string() + "]}\n    write: {highest: internal, folders: [" + path("out") +
        "]}\n  key_custodian: {groups: [root], keys: {highest: secret, "
        "folders: [" +
        path("mine") + "]}}\n");
    write("in/a.txt", "text");
    make("mine/internal", "internal");
    make("mine/secret", "secret");
  }
  void make(const std::string& out, const std::string& classification) const {
    PackOptions made = options("in", out);
    made.label = parse_label({"classification=" + classification});
    pack(made, {});
  }
  // Returns why the policy refuses this, or "".
  std::string refusal(Deed deed, const std::string& name) const {
    try {
      check_folder_access(access_, deed, path(name));
      return "";
    } catch (const PolicyError& error) {
      return error.what();
    }
  }
  CommandRun check_run(const Words& more = {}, bool has_policy = true) const {
    write("run.yaml",
          "model: {family: gpt2, layers: 1, hidden: 16, heads: 2, vocab: 257, context: 16}\n"
          "data: {train: " +
              path("mine/internal") +
              ", sequence: 16}\n"
              "train: {steps: 4, global_batch: 4, micro_batch: 1, precision: fp32}\n"
              "run: {dir: " +
              path("out/run") + "}\n");
    Words words = {"policy", "check", path("run.yaml")};
    words.insert(words.end(), more.begin(), more.end());
    const AccessSource source =
        has_policy ? AccessSource([this]() -> const Access& { return access_; }) : without_policy();
    return run_command_line(
        [&](CommandLine& app, int& code) { add_policy_command(app, source, code); }, words);
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  PolicySite site_;
  Access access_;
  EnvironmentVariables variables_;
};

TEST_F(FolderAccess, ADatasetIsJudgedByItsLabel) {
  EXPECT_EQ(refusal(Deed::read, "mine/internal"), "");
  EXPECT_EQ(refusal(Deed::read, "mine/internal/"), "");
  EXPECT_THAT(refusal(Deed::read, "mine/secret"),
              HasSubstr("roles.trainer.read covers up to internal, and it is secret"));
  EXPECT_THAT(refusal(Deed::read, "mine/secret/"), HasSubstr("covers up to internal"));
  EXPECT_EQ(refusal(Deed::keys, "mine/secret"), "");
}

TEST_F(FolderAccess, EverythingInAFolderMustBeAllowed) {
  EXPECT_THAT(refusal(Deed::read, "mine"), HasSubstr("it is secret"));
  fs::remove_all(path("mine/secret"));
  EXPECT_EQ(refusal(Deed::read, "mine"), "");
  save_labelled(path("mine"), 1, {"classification=secret"});
  EXPECT_THAT(refusal(Deed::read, "mine"), HasSubstr("step-00000001"));
}

TEST_F(FolderAccess, LinksInAFolderAreNotFollowed) {
  fs::create_directories(path("links"));
  fs::create_directory_symlink(path("mine/secret"), path("links/secret"));
  EXPECT_EQ(refusal(Deed::read, "links"), "");
  EXPECT_THAT(refusal(Deed::read, "links/secret"), HasSubstr("it is secret"))
      << "one that is named is followed";
}

TEST_F(FolderAccess, TheStepsOfARunAreInItsFolderOrInCheckpoints) {
  save_labelled(path("run/checkpoints"), 1, {"classification=internal"});
  EXPECT_EQ(refusal(Deed::read, "run"), "");
  save_labelled(path("run/checkpoints"), 2, {"classification=secret"});
  for (const char* const name : {"run", "run/checkpoints", "run/checkpoints/step-00000002"}) {
    EXPECT_THAT(refusal(Deed::read, name), HasSubstr("it is secret")) << name;
  }
  EXPECT_EQ(refusal(Deed::read, "run/checkpoints/step-00000001"), "");
}

TEST_F(FolderAccess, DamagedDataHasAnUnknownLabelThatOnlyDestructionForgives) {
  fs::resize_file(path("mine/internal/manifest.json"),
                  fs::file_size(path("mine/internal/manifest.json")) - 10);
  EXPECT_THROW(check_folder_access(access_, Deed::read, path("mine/internal")), DataError);
  EXPECT_EQ(refusal(Deed::keys, "mine/internal"), "");
  EXPECT_THAT(refusal(Deed::write, "mine/internal"), HasSubstr("the role trainer cannot write a "
                                                               "dataset"));
  save_labelled(path("out/run"), 1, {"classification=secret"});
  EXPECT_THAT(refusal(Deed::write, "out/run"), HasSubstr("it is secret"));
  write("out/run/step-00000001/manifest.json", "{");
  EXPECT_EQ(refusal(Deed::write, "out/run"), "") << "what is damaged may be erased";
}

TEST_F(FolderAccess, ADatasetWithoutItsWordIsStillOne) {
  const std::string manifest = path("mine/secret/manifest.json");
  std::string text = read_file(manifest);
  text.replace(text.find("trireme-dataset"), 15, "trireme-nothing");
  write("mine/secret/manifest.json", text);
  EXPECT_THROW(check_folder_access(access_, Deed::read, path("mine/secret")), DataError);
  EXPECT_THAT(refusal(Deed::write, "mine/secret"), HasSubstr("cannot write a dataset"));
  EXPECT_THROW(check_folder_access(access_, Deed::read, path("mine")), DataError);
  fs::remove(manifest);
  EXPECT_THROW(check_folder_access(access_, Deed::read, path("mine/secret")), DataError);
  EXPECT_THAT(refusal(Deed::write, "mine/secret"), HasSubstr("cannot write a dataset"));
}

TEST_F(FolderAccess, AFolderThatMayBeEitherIsRefused) {
  const std::string unclear = "so that no rule of the policy can be applied";
  save_labelled(path("out/run"), 1, {"classification=internal"});
  const std::string step = path("out/run/step-00000001");
  // A manifest that allows the deed, over the shards of something else; then a whole step there.
  fs::copy_file(step + "/manifest.json", path("mine/secret/manifest.json"),
                fs::copy_options::overwrite_existing);
  EXPECT_THROW(check_folder_access(access_, Deed::read, path("mine/secret")), DataError);
  EXPECT_THAT(refusal(Deed::write, "mine/secret"), HasSubstr("cannot write a dataset"));
  for (const fs::directory_entry& entry : fs::directory_iterator(step)) {
    fs::copy_file(entry.path(), fs::path(path("mine/secret")) / entry.path().filename(),
                  fs::copy_options::overwrite_existing);
  }
  for (const Deed deed : {Deed::read, Deed::write, Deed::keys}) {
    EXPECT_THAT(refusal(deed, "mine/secret"), HasSubstr(unclear));
  }
  EXPECT_THAT(refusal(Deed::read, "mine"), HasSubstr(unclear));
  fs::copy_file(path("mine/internal/manifest.json"), step + "/manifest.json",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(Deed::read, "out/run/step-00000001"), HasSubstr(unclear));
  write("mine/other/manifest.json", "{}");
  EXPECT_THAT(refusal(Deed::read, "mine/other"), HasSubstr("but no shards"));
}

TEST_F(FolderAccess, WhatIsNoDataIsLeftToTheCommand) {
  for (const char* const name : {"absent", "in", "in/a.txt"}) {
    EXPECT_EQ(refusal(Deed::write, name), "") << name;
  }
  EXPECT_NO_THROW(check_dataset_access(access_, Deed::read, path("absent")));
}

TEST_F(FolderAccess, WithoutAPolicyNothingIsRead) {
  write("mine/internal/manifest.json", "{");
  EXPECT_NO_THROW(check_folder_access(Access(), Deed::read, path("mine/internal")));
  EXPECT_NO_THROW(check_dataset_access(Access(), Deed::read, path("mine/internal")));
}

TEST_F(FolderAccess, AnOutputIsJudgedByItsPlaceAndLabel) {
  const auto output = [&](const std::string& name, const Words& label) -> std::string {
    try {
      check_output_access(access_, Thing::checkpoint, path(name), parse_label(label));
      return "";
    } catch (const PolicyError& error) {
      return error.what();
    }
  };
  EXPECT_EQ(output("out/run", {"classification=internal"}), "");
  EXPECT_THAT(output("out/run", {"classification=secret"}), HasSubstr("covers up to internal"));
  EXPECT_THAT(output("mine/run", {"classification=internal"}), HasSubstr("does not cover"));
}

TEST_F(FolderAccess, CheckpointsAreAdmittedAsTheyAreOpened) {
  save_labelled(path("run"), 1, {"classification=internal"});
  save_labelled(path("run"), 2, {"classification=secret"});
  const KeyOptions checked = with_access({}, access_);
  const StepFolder one = inspect_step(path("run/step-00000001"));
  const StepFolder two = inspect_step(path("run/step-00000002"));
  EXPECT_NO_THROW(checked.admit(one.manifest.value(), one.path));
  EXPECT_THROW(checked.admit(two.manifest.value(), two.path), PolicyError);
}

TEST_F(FolderAccess, PolicyCheckAllowsARun) {
  const CommandRun run = check_run();
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("site     north, jurisdiction AE, host "),
                             HasSubstr("roles    trainer (group root), key_custodian (group "
                                       "root)\n"),
                             HasSubstr("allowed  read the dataset " + path("mine/internal") +
                                       " (data.train)\n         internal: the role trainer"),
                             HasSubstr("allowed  write the checkpoint " +
                                       path("out/run/checkpoints") + " (checkpoint.dir)\n"),
                             testing::EndsWith("The policy allows this run.\n")));
}

TEST_F(FolderAccess, PolicyCheckRefusesWhatAnyPartOfTheRunMayNot) {
  const CommandRun data = check_run({"data.train=" + path("mine/secret")});
  EXPECT_EQ(data.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(data.out, AllOf(HasSubstr("REFUSED  read the dataset " + path("mine/secret")),
                              HasSubstr("REFUSED  write the checkpoint "),
                              testing::EndsWith("The policy refuses this run.\n")))
      << "its checkpoints would be secret as well";
  const CommandRun place = check_run({"run.dir=" + path("elsewhere")});
  EXPECT_EQ(place.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(place.out, AllOf(HasSubstr("allowed  read the dataset "),
                               HasSubstr("REFUSED  write the checkpoint ")));
}

TEST_F(FolderAccess, PolicyCheckReadsValidationAndTheNewestWholeStep) {
  save_labelled(path("out/run/checkpoints"), 1, {"classification=internal"});
  save_labelled(path("out/run/checkpoints"), 2, {"classification=internal"});
  write("out/run/checkpoints/step-00000002/manifest.json", "{");
  const CommandRun run = check_run({"data.validation=" + path("mine/internal"), "--json"});
  EXPECT_EQ(run.code, 0) << run.err;
  const json document = json::parse(run.out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_EQ(document["allowed"], true);
  EXPECT_EQ(document["policy_sha256"].get<std::string>().size(), 64U);
  ASSERT_EQ(document["deeds"].size(), 4U);
  EXPECT_EQ(document["deeds"][1]["key"], "data.validation");
  EXPECT_EQ(document["deeds"][2]["key"], "checkpoint.resume");
  EXPECT_EQ(document["deeds"][2]["path"], path("out/run/checkpoints/step-00000001"));
  EXPECT_EQ(document["deeds"][3]["deed"], "write");
  EXPECT_EQ(document["deeds"][3]["label"]["classification"], "internal");
}

TEST_F(FolderAccess, PolicyCheckWithoutAPolicySaysSo) {
  const CommandRun run = check_run({}, false);
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("policy   none: /etc/trireme/policy.yaml does not exist"),
                             Not(HasSubstr("roles"))));
  EXPECT_TRUE(json::parse(check_run({"--json"}, false).out)["policy"].is_null());
}

TEST_F(FolderAccess, PolicyCheckNeedsDatasetsThatExist) {
  EXPECT_EQ(check_run({"data.train=" + path("absent")}).code,
            static_cast<int>(ExitCode::not_found));
  EXPECT_EQ(check_run({"data.train=" + path("mine"), "no.such=1"}).code,
            static_cast<int>(ExitCode::usage));
}

}  // namespace
}  // namespace trireme
