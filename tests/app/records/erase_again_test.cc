// `trireme erase` after it was interrupted: the same command finishes it, with a certificate of
// everything, and erases nothing that it had not listed.
#include <gmock/gmock.h>

#include "tests/app/records/erase_fixture.h"
#include "tests/io/checkpoint/sample_state.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class EraseAgain : public EraseFixture {};

// What SIGKILL leaves after the draft was written and some files are gone.
TEST_F(EraseAgain, TheSameCommandFinishesWhatWasInterrupted) {
  pack(sealed_options("in", "sealed"), {});
  const ErasePlan plan = plan_erasure(path("sealed"));
  const std::vector<Subject> files = digests_of(plan);
  begin_erasure(plan);
  const std::string keys = read_file(path("sealed/keys.json"));
  put(path("sealed/keys.json"), std::string(keys.size(), '\0'));
  fs::remove_all(path("sealed/shards"));
  const CommandRun run = erase_confirmed("sealed");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.err, AllOf(HasSubstr("This finishes the erasure of 3 files that was interrupted "
                                       "after 2026-01-02T03:04:05Z"),
                             Not(HasSubstr("not encrypted"))));
  const Erasure found = erasure();
  ASSERT_EQ(found.files.size(), files.size());
  for (std::size_t i = 0; i < files.size(); ++i) {
    EXPECT_EQ(found.files[i].name, files[i].name);
    EXPECT_EQ(found.files[i].sha256, files[i].sha256) << "as it was before: " << files[i].name;
  }
  EXPECT_EQ(found.started, "2026-01-02T03:04:05Z");
  EXPECT_EQ(found.bytes, plan.bytes);
  EXPECT_THAT(found.keys, ElementsAre("keys.json"));
  EXPECT_EQ(found.gone_before, Words{files[2].name});
  EXPECT_FALSE(fs::exists(path("gone.json.draft")));
  EXPECT_FALSE(fs::exists(path("gone.json.room")));
  const CommandRun checked = verify_certificate();
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out, HasSubstr("interrupted: 1 of these files were gone when it was given"));
}

// Somebody may have put the keys aside meanwhile, and put them back beside a copy of the data.
TEST_F(EraseAgain, KeysThatWereGoneAreNotCertifiedAsOverwritten) {
  pack(sealed_options("in", "sealed"), {});
  begin_erasure(plan_erasure(path("sealed")));
  fs::rename(path("sealed/keys.json"), path("saved.json"));
  ASSERT_EQ(erase_confirmed("sealed").code, 0);
  EXPECT_THAT(erasure().keys, testing::IsEmpty());
  EXPECT_THAT(erasure().gone_before, ElementsAre("keys.json"));
  const CommandRun checked = verify_certificate();
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out,
              AllOf(HasSubstr("its wrapped keys were gone when the erasure was given again"),
                    HasSubstr("not known whether they were overwritten: keys.json"),
                    Not(HasSubstr("overwritten before all else"))));
}

TEST_F(EraseAgain, EmptiedKeysAreNotCertifiedAsOverwritten) {
  pack(sealed_options("in", "sealed"), {});
  begin_erasure(plan_erasure(path("sealed")));
  put(path("sealed/keys.json"), "");
  ASSERT_EQ(erase_confirmed("sealed").code, 0);
  EXPECT_THAT(erasure().keys, testing::IsEmpty());
  EXPECT_THAT(erasure().missing_keys, ElementsAre("keys.json"));
  EXPECT_EQ(verify_certificate().code, 0);
}

TEST_F(EraseAgain, ThereIsACertificateEvenIfEverythingWasGone) {
  const ErasePlan plan = plan_erasure(path("set"));
  begin_erasure(plan);
  erase(plan, false);
  ASSERT_FALSE(fs::exists(path("set")));
  EXPECT_EQ(erase_confirmed("in").code, static_cast<int>(ExitCode::refused)) << "another folder";
  const CommandRun run = erase_confirmed("set/");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused)) << "confirmed with another word";
  const CommandRun again = erase_confirmed("set");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_THAT(erasure().gone_before, ElementsAre("manifest.json", "shards/00000.h5"));
  EXPECT_EQ(verify_certificate().code, 0);
}

TEST_F(EraseAgain, AKillBeforeTheDraftIsRemovedIsNoObstacle) {
  const ErasePlan plan = plan_erasure(path("set"));
  begin_erasure(plan);
  const std::string draft = read_file(path("gone.json.draft"));
  ASSERT_EQ(erase_confirmed("set").code, 0);
  const std::string certificate = read_file(path("gone.json"));
  put(path("gone.json.draft"), draft);
  const CommandRun again = erase_confirmed("set");
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(read_file(path("gone.json")), certificate);
  EXPECT_FALSE(fs::exists(path("gone.json.draft")));
  EXPECT_EQ(erase_confirmed("set").code, static_cast<int>(ExitCode::not_found));
}

TEST_F(EraseAgain, WhatWasMadeOrChangedSinceTheInterruptionIsNotErasedUnlisted) {
  begin_erasure(plan_erasure(path("set")));
  const std::string shard = read_file(path("set/shards/00000.h5"));
  put(path("set/new"), "");
  EXPECT_THAT(erase_confirmed("set").err, HasSubstr("set/new was made since the erasure was"));
  fs::remove(path("set/new"));
  put(path("set/shards/00000.h5"), "of a later run");
  const CommandRun run = erase_confirmed("set");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(run.err, HasSubstr("00000.h5 was changed since the erasure was interrupted"));
  put(path("set/shards/00000.h5"), std::string(shard.size(), '\0'));
  EXPECT_THAT(erase_confirmed("set", {"--overwrite"}).err, HasSubstr("was changed since"))
      << "the interrupted command did not overwrite";
  put(path("set/shards/00000.h5"), shard);
  EXPECT_EQ(erase_confirmed("set", {"--overwrite"}).code, 0);
  EXPECT_FALSE(erasure().overwritten) << "some were perhaps removed without that";
}

TEST_F(EraseAgain, OnlyADraftOfTheSameKeyCounts) {
  const ErasePlan plan = plan_erasure(path("set"));
  put(path("gone.json.draft"), "mine");
  expect_refused(erase_confirmed("set"), ExitCode::refused,
                 "would be the draft of the certificate, and is not what `trireme erase` writes");
  EXPECT_EQ(read_file(path("gone.json.draft")), "mine");
  fs::remove(path("gone.json.draft"));
  CertificateFile(path("gone.json"), SigningKey::generate()).begin(planned(plan));
  const SigningKey other = SigningKey::generate();
  CertificateFile(path("x.json"), other).begin(planned(plan));
  fs::rename(path("x.json.draft"), path("gone.json.draft"));
  expect_refused(erase_confirmed("set"), ExitCode::refused, "not by the key that is to sign");
  fs::remove(path("gone.json.draft"));
  expect_refused(erase_confirmed("set"), ExitCode::refused, "gone.json.room exists, where the");
  fs::remove(path("gone.json.room"));
  EXPECT_EQ(erase_confirmed("set").code, 0);
}

TEST_F(EraseAgain, ADraftIsNoCertificate) {
  begin_erasure(plan_erasure(path("set")));
  fs::copy_file(path("gone.json.draft"), path("gone.json"));
  const CommandRun checked = verify_certificate();
  EXPECT_EQ(checked.code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(checked.err, HasSubstr("not a certificate of deletion"));
}

TEST_F(EraseAgain, AnEmptyCertificateOfAnEarlierVersionIsReplaced) {
  put(path("gone.json"), "");
  EXPECT_EQ(erase_confirmed("set").code, 0);
  EXPECT_EQ(verify_certificate().code, 0);
}

TEST_F(EraseAgain, OfSeveralStepsTheManifestsGoLast) {
  for (const std::int64_t step : {1, 2}) {
    ASSERT_TRUE(save_state(path("checkpoints"), small_state(), step).durable);
  }
  fs::create_directories(path("checkpoints/other/below"));
  const ErasePlan plan = plan_erasure(path("checkpoints"));
  put(path("checkpoints/step-00000002/later"), "keeps the step from being removed");
  EXPECT_THROW(erase(plan, false), IoError);
  EXPECT_EQ(files_below("checkpoints"),
            (Words{"step-00000001/manifest.json", "step-00000002/later"}));
  EXPECT_FALSE(fs::exists(path("checkpoints/other")));
}

TEST_F(EraseAgain, WhatAFailureHasLeftIsRecognizedAndErased) {
  fs::remove(path("set/shards/00000.h5"));  // the manifest is the last file that goes
  EXPECT_EQ(erase_confirmed("set").code, 0);
  EXPECT_FALSE(fs::exists(path("set")));
}

}  // namespace
}  // namespace trireme
