// The check before an export makes sure that the releasers have agreed to it.
#include <gmock/gmock.h>

#include "tests/app/records/release_fixture.h"
#include "tests/io/checkpoint/sample_state.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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
  ReleaseUse use(const std::string& file = "release.json",
                 const std::string& step = "checkpoints/step-00000001") const {
    const StepFolder found = inspect_step(path(step));
    return check_release(access_, found.manifest.value(), found.path,
                         file.empty() ? ReleaseFiles() : ReleaseFiles{path(file)});
  }
  std::string check(const std::string& file = "release.json",
                    const std::string& step = "checkpoints/step-00000001") const {
    return use(file, step).signers;
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
  access_ =
      site_.access("roles:\n  releaser: {groups: [root], export: {highest: secret, folders: [" +
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

// Adapters are exported together with the weights of another checkpoint.
TEST_F(ReleaseCheck, EachCheckpointHasItsOwnAmongSeveral) {
  request();
  sign("sara");
  sign("omar");
  save_labelled(path("checkpoints"), 2, {"classification=internal"});
  request("adapters.json");
  const ReleaseFiles both = {path("release.json"), path("adapters.json")};
  const auto signers_of = [&](const std::string& name) {
    const StepFolder step = inspect_step(path("checkpoints/" + name));
    return check_release(access_, step.manifest.value(), step.path, both).signers;
  };
  EXPECT_THAT(signers_of("step-00000001"), HasSubstr("omar"));
  EXPECT_THAT(message_of<PolicyError>([&] { (void)signers_of("step-00000002"); }),
              HasSubstr("adapters.json: 0 of the releasers have signed it"));
  save_labelled(path("checkpoints"), 3, {"classification=internal"});
  EXPECT_THAT(message_of<PolicyError>([&] { (void)signers_of("step-00000003"); }),
              AllOf(HasSubstr("step-00000003 has no release here: "),
                    HasSubstr("release.json: it releases another checkpoint"),
                    HasSubstr("adapters.json: it releases another checkpoint")));
}

TEST_F(ReleaseCheck, AReleaseThatShowedAnotherLabelDoesNotCount) {
  for (const char* const label :
       {R"({"classification": "public"})", R"({"classification": "internal"})", "null"}) {
    request_with("label", nlohmann::json::parse(label));
    sign_elsewhere("sara");
    sign_elsewhere("omar");
    EXPECT_THAT(refusal(), AllOf(HasSubstr("it gives the label "),
                                 HasSubstr("step-00000001, which has the label internal; owner "
                                           "health: ask for another one")));
  }
}

TEST_F(ReleaseCheck, ACopyMayBeExported) {
  request();
  sign("sara");
  sign("omar");
  EXPECT_EQ(use().other_place, "");
  fs::rename(path("checkpoints"), path("moved"));
  EXPECT_EQ(use("release.json", "moved/step-00000001").other_place,
            "file://" + path("checkpoints/step-00000001"));
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
                                    {path("release.json")});
              }),
              HasSubstr("it changed while it was read"));
}

TEST_F(ReleaseCheck, KeysAreOpenedForAnExportOnlyAfterTheCheck) {
  const StepFolder found = inspect_step(path("checkpoints/step-00000001"));
  ReleaseUses uses;
  const KeyOptions unsigned_export = with_export({}, access_, {}, uses);
  EXPECT_THAT(
      message_of<PolicyError>([&] { unsigned_export.admit(found.manifest.value(), found.path); }),
      HasSubstr("signatures of 2 releasers"));
  request();
  sign("sara");
  sign("omar");
  const KeyOptions signed_export = with_export({}, access_, {path("release.json")}, uses);
  EXPECT_NO_THROW(signed_export.admit(found.manifest.value(), found.path));
  EXPECT_THAT(uses.at(found.path).signers, AllOf(HasSubstr("sara"), HasSubstr("omar")));
  const Access reader =
      site_.access("roles:\n  auditor: {groups: [root], read: {highest: secret, folders: [/]}}\n");
  const KeyOptions no_role = with_export({}, reader, {path("release.json")}, uses);
  EXPECT_THAT(message_of<PolicyError>([&] { no_role.admit(found.manifest.value(), found.path); }),
              HasSubstr("the role auditor cannot export a checkpoint"));
}

}  // namespace
}  // namespace trireme
