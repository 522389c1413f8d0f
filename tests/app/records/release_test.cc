// `trireme release` step by step, and what the check before an export makes of its result.
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "src/app/evidence/release_check.h"
#include "src/app/evidence/release_command.h"
#include "src/base/digest.h"
#include "tests/app/command_run.h"
#include "tests/app/records/policy_site.h"
#include "tests/io/checkpoint/sample_state.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class ReleaseCommand : public testing::Test {
 protected:
  ReleaseCommand() {
    save_labelled(path("checkpoints"), 1, {"classification=internal", "owner=health"});
    for (const char* const name : {"sara", "omar", "eve"}) {
      const SigningKey key = SigningKey::generate();
      key.save(path(std::string(name) + ".key"));
      write(std::string(name) + ".pem",
            "# " + std::string(name) + "\n" + key.public_key().to_pem());
    }
  }
  static CommandRun release(Words words) {
    words.insert(words.begin(), "release");
    return run_command_line([](CommandLine& app, int&) { add_release_command(app); }, words);
  }
  CommandRun request(const std::string& out = "release.json") const {
    return release({"request", path("checkpoints"), "--out", path(out), "--recipient",
                    "University X", "--reason", "joint paper"});
  }
  CommandRun sign(const std::string& name) const {
    return release({"sign", path("release.json"), "--key", path(name + ".key")});
  }
  CommandRun show(const std::string& trust = "") const {
    Words words = {"show", path("release.json")};
    if (!trust.empty()) {
      words.insert(words.end(), {"--trust", path(trust)});
    }
    return release(words);
  }
  std::string text_of(const std::string& name) const { return read_file(path(name)); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  TempFolder folder_;
};

TEST_F(ReleaseCommand, ARequestNamesTheNewestCheckpointAndWhy) {
  save_labelled(path("checkpoints"), 2, {"classification=secret"});
  const CommandRun run = request();
  EXPECT_EQ(run.code, 0) << run.err;
  const std::string manifest = text_of("checkpoints/step-00000002/manifest.json");
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("checkpoint file://" + path("checkpoints/step-00000002") + "\n"),
                    HasSubstr("manifest   sha256:" + sha256_hex(manifest) + "\n"),
                    HasSubstr("label      secret\n"), HasSubstr("recipient  University X\n"),
                    HasSubstr("reason     joint paper\n"), HasSubstr("\nsignatures 0\n")));
  EXPECT_EQ(show().out, run.out) << "show prints what was requested";
  EXPECT_THAT(show().out, Not(HasSubstr("signed     by")));
}

TEST_F(ReleaseCommand, ACheckpointMayHaveNoLabel) {
  ASSERT_TRUE(save_state(path("plain"), small_state(), 1).durable);
  const CommandRun run = release({"request", path("plain"), "--out", path("release.json"),
                                  "--recipient", "X", "--reason", "y"});
  EXPECT_THAT(run.out, HasSubstr("label      (none)\n"));
}

TEST_F(ReleaseCommand, ARequestReplacesNoFile) {
  write("release.json", "kept");
  const CommandRun run = request();
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(run.err, HasSubstr("exists, and a release replaces no file"));
  EXPECT_EQ(text_of("release.json"), "kept");
  fs::create_symlink("nowhere", path("link"));
  EXPECT_EQ(request("link").code, static_cast<int>(ExitCode::refused));
  EXPECT_FALSE(fs::exists(path("nowhere")));
}

TEST_F(ReleaseCommand, ThereMustBeACheckpointAndAReason) {
  EXPECT_EQ(
      release({"request", path("absent"), "--out", path("r"), "--recipient", "X", "--reason", "y"})
          .code,
      static_cast<int>(ExitCode::not_found));
  EXPECT_EQ(release({"request", path("checkpoints"), "--out", path("r"), "--recipient", "X"}).code,
            static_cast<int>(ExitCode::usage));
  EXPECT_EQ(release({"request", path("checkpoints"), "--out", path("r"), "--reason", "y"}).code,
            static_cast<int>(ExitCode::usage));
  EXPECT_FALSE(fs::exists(path("r")));
}

TEST_F(ReleaseCommand, EachKeySignsOnce) {
  request();
  EXPECT_THAT(sign("sara").out,
              AllOf(HasSubstr("\nsignatures 1\n"), HasSubstr("signed     with the key ")));
  EXPECT_THAT(sign("omar").out, HasSubstr("\nsignatures 2\n"));
  const std::string before = text_of("release.json");
  const CommandRun again = sign("sara");
  EXPECT_EQ(again.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(again.err, HasSubstr("this key has signed already"));
  EXPECT_EQ(text_of("release.json"), before);
}

TEST_F(ReleaseCommand, ShowSaysWhoseSignaturesCount) {
  request();
  const CommandRun none = show("sara.pem");
  EXPECT_EQ(none.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(none.err, HasSubstr("no trusted key has signed it"));
  sign("sara");
  EXPECT_THAT(show("sara.pem").out, HasSubstr("signed     by sara (key "));
  EXPECT_EQ(show("omar.pem").code, static_cast<int>(ExitCode::refused));
  sign("omar");
  write("both.pem", text_of("sara.pem") + text_of("omar.pem"));
  EXPECT_THAT(show("both.pem").out, AllOf(HasSubstr("sara (key "), HasSubstr("omar (key ")));
}

TEST_F(ReleaseCommand, AForgedSignatureIsCalledThat) {
  request();
  sign("sara");
  sign("omar");
  nlohmann::json envelope = nlohmann::json::parse(text_of("release.json"));
  std::swap(envelope["signatures"][0]["sig"], envelope["signatures"][1]["sig"]);
  write("release.json", envelope.dump());
  const CommandRun forged = show("sara.pem");
  EXPECT_EQ(forged.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(forged.err, HasSubstr("does not fit"));
}

TEST_F(ReleaseCommand, OtherEnvelopesAreNoReleases) {
  const Envelope other = make_envelope("application/other", "{}", nullptr);
  write("release.json", to_text(other));
  for (const CommandRun& run : {show(), sign("sara")}) {
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::bad_data));
    EXPECT_THAT(run.err, HasSubstr("it holds 'application/other' and not a release"));
  }
  write("release.json", "{");
  EXPECT_EQ(show().code, static_cast<int>(ExitCode::bad_data));
}

// The policy asks for two of the releasers sara and omar above public.
class ReleaseCheck : public ReleaseCommand {
 protected:
  void SetUp() override {
    if (!site_.is_possible()) {
      GTEST_SKIP() << "only root can make a policy: run as root";
    }
    site_.write("releasers.pem", text_of("sara.pem") + text_of("omar.pem"));
    access_ = site_.access(
        "roles:\n  releaser: {groups: [root], export: {highest: secret, folders: [" + path("") +
        "]}}\nrelease: {keys: " + site_.path("releasers.pem") + ", signers: 2, above: public}\n");
  }
  std::string check(const std::string& file = "release.json",
                    const std::string& step = "checkpoints/step-00000001") const {
    const StepFolder found = inspect_step(path(step));
    return check_release(access_, found.manifest.value(), found.path,
                         file.empty() ? "" : path(file));
  }
  std::string refusal(const std::string& file = "release.json") const {
    return message_of<PolicyError>([&] { (void)check(file); });
  }

  PolicySite site_;
  Access access_;
};

TEST_F(ReleaseCheck, TwoReleasersMustHaveSigned) {
  EXPECT_THAT(refusal(""), HasSubstr("the policy asks for the signatures of 2 releasers"));
  request();
  EXPECT_THAT(refusal(), HasSubstr("0 of the releasers have signed it, and the policy asks for 2"));
  sign("sara");
  sign("eve");
  EXPECT_THAT(refusal(), HasSubstr("1 of the releasers has signed it, and the policy asks for 2"));
  sign("omar");
  EXPECT_THAT(check(), AllOf(HasSubstr("sara"), HasSubstr("omar"), Not(HasSubstr("eve"))));
}

TEST_F(ReleaseCheck, OnlyWhatIsAboveTheLimitNeedsARelease) {
  save_labelled(path("public"), 1, {"classification=public"});
  EXPECT_EQ(check("", "public/step-00000001"), "");
  ASSERT_TRUE(save_state(path("plain"), small_state(), 1).durable);
  EXPECT_THAT(message_of<PolicyError>([&] { (void)check("", "plain/step-00000001"); }),
              HasSubstr("signatures of 2 releasers"))
      << "without a label, it could be anything";
  access_ = site_.access(
      "roles:\n  releaser: {groups: [root], export: {highest: secret, folders: "
      "[" +
      path("") + "]}}\n");
  EXPECT_EQ(check(""), "") << "this policy has no rule";
  access_ = Access();
  EXPECT_EQ(check(""), "");
}

TEST_F(ReleaseCheck, AReleaseIsForOneCheckpoint) {
  request();
  sign("sara");
  sign("omar");
  save_labelled(path("checkpoints"), 2, {"classification=internal"});
  EXPECT_THAT(
      message_of<PolicyError>([&] { (void)check("release.json", "checkpoints/step-00000002"); }),
      AllOf(HasSubstr("it releases another checkpoint"), HasSubstr("step-00000001")));
}

TEST_F(ReleaseCheck, RevokedReleasersDoNotCount) {
  request();
  sign("sara");
  sign("omar");
  const std::string omar = text_of("omar.pem").substr(text_of("omar.pem").find('\n') + 1);
  for (const char* const when : {"always left", "2999-01-01T00:00:00Z leaves"}) {
    site_.write("releasers.pem", text_of("eve.pem") + "# omar\nrevoked: " + when + "\n" + omar +
                                     text_of("sara.pem"));
    EXPECT_THAT(refusal(), HasSubstr("1 of the releasers has signed it")) << when;
  }
}

TEST_F(ReleaseCheck, ThereMustBeAsManyReleasersAsSigners) {
  request();
  site_.write("releasers.pem", text_of("sara.pem"));
  EXPECT_THAT(refusal(), HasSubstr("holds 1 keys, but the policy asks for 2 signers"));
  fs::remove(site_.path("releasers.pem"));
  EXPECT_THAT(refusal(), HasSubstr("which holds the releasers' keys, does not exist"));
}

TEST_F(ReleaseCheck, AForgedSignatureSpoilsTheOthers) {
  request();
  sign("sara");
  sign("omar");
  nlohmann::json envelope = nlohmann::json::parse(text_of("release.json"));
  envelope["signatures"][1]["sig"] = envelope["signatures"][0]["sig"];
  write("release.json", envelope.dump());
  EXPECT_THAT(refusal(), AllOf(HasSubstr("a signature that names the key of omar"),
                               HasSubstr("is not of that key")));
}

TEST_F(ReleaseCheck, AManifestThatChangedWhileItWasReadIsNotReleased) {
  request();
  const StepFolder found = inspect_step(path("checkpoints/step-00000001"));
  save_labelled(path("other"), 1, {"classification=internal"}, 7);
  fs::copy_file(path("other/step-00000001/manifest.json"), found.path / "manifest.json",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(message_of<DataError>([&] {
                (void)check_release(access_, found.manifest.value(), found.path,
                                    path("release.json"));
              }),
              HasSubstr("it changed while it was read"));
}

TEST_F(ReleaseCheck, KeysAreOpenedForAnExportOnlyAfterTheCheck) {
  const StepFolder found = inspect_step(path("checkpoints/step-00000001"));
  const KeyOptions unsigned_export = with_export({}, access_, "");
  EXPECT_THAT(
      message_of<PolicyError>([&] { unsigned_export.admit(found.manifest.value(), found.path); }),
      HasSubstr("signatures of 2 releasers"));
  request();
  sign("sara");
  sign("omar");
  const KeyOptions signed_export = with_export({}, access_, path("release.json"));
  EXPECT_NO_THROW(signed_export.admit(found.manifest.value(), found.path));
  const Access reader =
      site_.access("roles:\n  auditor: {groups: [root], read: {highest: secret, folders: [/]}}\n");
  const KeyOptions no_role = with_export({}, reader, path("release.json"));
  EXPECT_THAT(message_of<PolicyError>([&] { no_role.admit(found.manifest.value(), found.path); }),
              HasSubstr("the role auditor cannot export a checkpoint"));
}

}  // namespace
}  // namespace trireme
