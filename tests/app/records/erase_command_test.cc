// `trireme erase`: what is gone afterwards and what the certificate says, and everything that
// makes it refuse before the first file is touched.
#include <fcntl.h>
#include <gmock/gmock.h>

#include "io/checkpoint/run_lock.h"
#include "tests/app/records/erase_fixture.h"
#include "tests/io/checkpoint/sample_state.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::UnorderedElementsAre;

class EraseCommand : public EraseFixture {};

TEST_F(EraseCommand, ADatasetIsGoneAndCertified) {
  const std::string manifest = sha256_hex(read_file(path("set/manifest.json")));
  const CommandRun run = erase_confirmed("set", {"--reason", "the time is over"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_FALSE(fs::exists(path("set")));
  EXPECT_TRUE(fs::exists(path("in/a.txt")));
  EXPECT_THAT(run.err,
              AllOf(HasSubstr("The dataset " + path("set") + " will be gone for ever: 2 files, "),
                    HasSubstr("It is not encrypted, and its bytes stay on the disk"),
                    HasSubstr("Copies elsewhere")));
  EXPECT_THAT(run.out, AllOf(HasSubstr("erased:      " + path("set") + " (2 files, "),
                             HasSubstr("certificate: " + path("gone.json") +
                                       ", signed by the key " + short_id(key_.public_key().id()))));
  const Erasure found = erasure();
  EXPECT_EQ(found.kind, "dataset");
  EXPECT_EQ(found.uri, "file://" + path("set"));
  EXPECT_EQ(found.reason, "the time is over");
  EXPECT_FALSE(found.overwritten);
  EXPECT_TRUE(found.keys.empty());
  ASSERT_EQ(found.files.size(), 2U);
  EXPECT_EQ(found.files[0].name, "manifest.json");
  EXPECT_EQ(found.files[0].sha256, manifest);
  EXPECT_LE(found.started, found.finished);
  const CommandRun checked = verify_certificate();
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out, AllOf(HasSubstr("The certificate is as it was signed."),
                                 HasSubstr("That no copy exists elsewhere, nothing can show.")));
}

TEST_F(EraseCommand, AChangedCertificateIsNotBelieved) {
  erase_confirmed("set");
  std::string text = read_file(path("gone.json"));
  const std::size_t at = text.find("\"payload\"") + 20;
  text[at] = text[at] == 'A' ? 'B' : 'A';
  put(path("gone.json"), text);
  const CommandRun checked = verify_certificate();
  EXPECT_NE(checked.code, 0);
  EXPECT_THAT(checked.out, Not(HasSubstr("as it was signed")));
}

TEST_F(EraseCommand, TheWordIsWantedTwice) {
  for (const Words& given :
       {Words{}, Words{"--confirm", "set"}, Words{"--confirm", "set", "--confirm", "yes"},
        Words{"--confirm", path("set"), "--confirm", "set"}}) {
    Words words = {"--sign", path("sign.key")};
    words.insert(words.end(), given.begin(), given.end());
    expect_refused(erase_with("set", words), ExitCode::refused, "nothing was erased");
  }
}

TEST_F(EraseCommand, WithoutAKeyNothingIsErased) {
  expect_refused(erase_with("set", {"--confirm", "set", "--confirm", "set"}), ExitCode::usage,
                 "no key to sign the certificate: name one with --sign");
  fs::permissions(path("sign.key"), fs::perms::others_read, fs::perm_options::add);
  expect_refused(erase_confirmed("set"), ExitCode::refused, "sign.key");
}

TEST_F(EraseCommand, TheCertificateReplacesNoFileAndSurvives) {
  put(path("other"), "kept");
  const CommandRun exists = erase_confirmed("set", {"--certificate", path("other")});
  EXPECT_NE(exists.code, 0) << "the option was given twice";
  put(path("gone.json"), "kept");
  const CommandRun run = erase_confirmed("set");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(run.err, HasSubstr("a certificate replaces no file"));
  EXPECT_EQ(read_file(path("gone.json")), "kept");
  EXPECT_TRUE(fs::exists(path("set/manifest.json")));
  fs::remove(path("gone.json"));
  fs::create_symlink("nowhere", path("gone.json"));
  EXPECT_EQ(erase_confirmed("set").code, static_cast<int>(ExitCode::refused));
  EXPECT_FALSE(fs::exists(path("nowhere")));
}

TEST_F(EraseCommand, TheCertificateMayNotLieInWhatIsErased) {
  fs::create_directory_symlink("set", path("alias"));
  for (const std::string& name :
       {path("set/gone.json"), path("alias/gone.json"), path("in/../set/shards/gone.json")}) {
    AuditTrail audit;
    const CommandRun run = run_command_line(
        [&](CommandLine& app, int&) { add_erase_command(app, audit, without_policy()); },
        {"erase", path("set"), "--certificate", name, "--sign", path("sign.key"), "--confirm",
         "set", "--confirm", "set"});
    expect_refused(run, ExitCode::usage, "lies in ");
    EXPECT_FALSE(fs::exists(name));
  }
}

TEST_F(EraseCommand, OnlyWhatTriremeMadeIsErased) {
  expect_refused(erase_confirmed("in"), ExitCode::usage, "is neither a checkpoint, nor a folder");
  expect_refused(erase_confirmed("absent"), ExitCode::not_found, "is no folder");
  expect_refused(erase_confirmed("in/a.txt"), ExitCode::not_found, "is no folder");
  fs::create_directory_symlink("set", path("alias"));
  expect_refused(erase_confirmed("alias"), ExitCode::usage,
                 "is a symbolic link: name the folder that it points to, set");
  EXPECT_TRUE(fs::exists(path("in/a.txt")));
}

TEST_F(EraseCommand, AFileWithAnotherNameWouldSurvive) {
  fs::create_hard_link(path("set/manifest.json"), path("second"));
  expect_refused(erase_confirmed("set"), ExitCode::refused, "has other names (hard links)");
  fs::remove(path("second"));
  EXPECT_EQ(erase_confirmed("set").code, 0);
}

TEST_F(EraseCommand, ALinkWhoseTargetWouldStayIsRefused) {
  for (const char* const target : {"../in/a.txt", "../in", "/nowhere/shard.h5", "link"}) {
    fs::create_symlink(target, path("set/link"));
    expect_refused(erase_confirmed("set"), ExitCode::refused,
                   "nothing was erased, because " + path("set/link") + " is a symbolic link to " +
                       target + ", whose contents would stay: remove the link, and erase what");
    fs::remove(path("set/link"));
  }
  EXPECT_EQ(read_file(path("in/a.txt")), "what shall be forgotten");
  ASSERT_TRUE(save_state(path("checkpoints"), small_state(), 1).durable);
  ASSERT_TRUE(save_state(path("archive"), small_state(), 2).durable);
  fs::create_directory_symlink("../archive/step-00000002", path("checkpoints/step-00000002"));
  expect_refused(erase_confirmed("checkpoints"), ExitCode::refused, "step-00000002 is a symbolic");
  EXPECT_TRUE(fs::exists(path("checkpoints/step-00000001/manifest.json")));
}

TEST_F(EraseCommand, ALinkWithinTheFolderGoesWithItsTarget) {
  fs::create_symlink("shards/00000.h5", path("set/link"));
  fs::create_directory_symlink("shards", path("set/folder"));
  const CommandRun run = erase_confirmed("set", {"--overwrite"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_FALSE(fs::exists(path("set")));
  EXPECT_EQ(erasure().files.size(), 2U) << "links are no files";
}

TEST_F(EraseCommand, OverwritingReachesWhoeverHasTheFileOpen) {
  const fs::path shard = path("set/shards/00000.h5");
  const std::int64_t size = static_cast<std::int64_t>(fs::file_size(shard));
  const File open_file = File::open_to_read(shard);
  const CommandRun run = erase_confirmed("set", {"--overwrite"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("its bytes stay on the disk")));
  EXPECT_TRUE(erasure().overwritten);
  std::string now(static_cast<std::size_t>(size), 'x');
  open_file.read_at(0, now.data(), size);
  EXPECT_EQ(now, std::string(static_cast<std::size_t>(size), '\0'));
}

TEST_F(EraseCommand, OfEncryptedDataTheKeysAreOverwrittenAndTheRestIsNot) {
  pack(sealed_options("in", "sealed"), {});
  const File keys = File::open_to_read(path("sealed/keys.json"));
  const fs::path encrypted = fs::directory_iterator(path("sealed/shards"))->path();
  const File shard = File::open_to_read(encrypted);
  const std::string before = read_file(encrypted);
  const auto size = static_cast<std::int64_t>(fs::file_size(path("sealed/keys.json")));
  const CommandRun run = erase_confirmed("sealed");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, Not(HasSubstr("not encrypted")));
  EXPECT_THAT(erasure().keys, ElementsAre("keys.json"));
  std::string now(static_cast<std::size_t>(size), 'x');
  keys.read_at(0, now.data(), size);
  EXPECT_EQ(now, std::string(now.size(), '\0'));
  std::string rest(before.size(), 'x');
  shard.read_at(0, rest.data(), static_cast<std::int64_t>(rest.size()));
  EXPECT_EQ(rest, before);
}

TEST_F(EraseCommand, ACheckpointGoesAloneOrWithAllOthers) {
  for (const std::int64_t step : {1, 2, 3}) {
    ASSERT_TRUE(save_state(path("checkpoints"), small_state(), step).durable);
  }
  EXPECT_EQ(erase_confirmed("checkpoints/step-00000002").code, 0);
  EXPECT_EQ(erasure().kind, "checkpoint");
  std::vector<std::string> skipped;
  EXPECT_EQ(find_step(path("checkpoints"), skipped).path.filename(), "step-00000003");
  EXPECT_FALSE(fs::exists(path("checkpoints/step-00000002")));
  fs::remove(path("gone.json"));
  const CommandRun all = erase_confirmed("checkpoints");
  EXPECT_EQ(all.code, 0) << all.err;
  const Erasure found = erasure();
  EXPECT_EQ(found.kind, "checkpoints");
  std::vector<std::string> manifests;
  for (const Subject& file : found.files) {
    if (file.name.ends_with("manifest.json")) {
      manifests.push_back(file.name);
    }
  }
  EXPECT_THAT(manifests,
              UnorderedElementsAre("step-00000001/manifest.json", "step-00000003/manifest.json"));
  EXPECT_FALSE(fs::exists(path("checkpoints")));
}

TEST_F(EraseCommand, NothingIsErasedBesideARun) {
  ASSERT_TRUE(save_state(path("checkpoints"), small_state(), 1).durable);
  {
    const RunLock lock(path("checkpoints"), false);
    expect_refused(erase_confirmed("checkpoints"), ExitCode::refused,
                   "nothing was erased, because a run writes to " + path("checkpoints"));
    expect_refused(erase_confirmed("checkpoints/step-00000001"), ExitCode::refused,
                   "because a run writes to " + path("checkpoints"));
  }
  EXPECT_EQ(erase_confirmed("checkpoints").code, 0);
}

TEST_F(EraseCommand, ThePlanIsSortedAndCountsBytes) {
  put(path("set/b"), "12345");
  fs::create_directories(path("set/x/y"));
  put(path("set/x/y/a"), "1");
  const ErasePlan plan = plan_erasure(path("set"));
  EXPECT_EQ(plan.folder, fs::canonical(path("set")));
  EXPECT_THAT(plan.files, ElementsAre("b", "manifest.json", "shards/00000.h5", "x/y/a"));
  EXPECT_THAT(plan.folders, ElementsAre("x/y", "x", "shards")) << "what is in a folder goes first";
  EXPECT_TRUE(plan.keys.empty());
  EXPECT_EQ(
      static_cast<std::uintmax_t>(plan.bytes),
      fs::file_size(path("set/manifest.json")) + fs::file_size(path("set/shards/00000.h5")) + 6);
}

TEST_F(EraseCommand, ACertificateSaysThatEncryptedDataHadLostItsKeys) {
  pack(sealed_options("in", "sealed"), {});
  fs::remove(path("sealed/keys.json"));
  const CommandRun run = erase_confirmed("sealed");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("It is encrypted, but keys.json is not there any more"),
                             Not(HasSubstr("not encrypted"))));
  EXPECT_TRUE(erasure().keys.empty());
  EXPECT_THAT(erasure().missing_keys, ElementsAre("keys.json"));
  const CommandRun checked = verify_certificate();
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out,
              AllOf(HasSubstr("it was encrypted, and had no wrapped keys any more"),
                    HasSubstr("that were not there any more when this began, so that it overwrote "
                              "none of them: keys.json"),
                    Not(HasSubstr("not encrypted"))));
}

TEST_F(EraseCommand, ADamagedManifestStillSaysThatDataWasEncrypted) {
  pack(sealed_options("in", "sealed"), {});
  fs::remove(path("sealed/keys.json"));
  const std::string text = read_file(path("sealed/manifest.json"));
  put(path("sealed/manifest.json"), text.substr(0, text.size() - 3));
  EXPECT_EQ(erase_confirmed("sealed").code, 0);
  EXPECT_THAT(erasure().missing_keys, ElementsAre("keys.json"));
}

}  // namespace
}  // namespace trireme
