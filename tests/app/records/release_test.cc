// `trireme release` step by step.
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>

#include "src/base/digest.h"
#include "tests/app/records/release_fixture.h"
#include "tests/io/checkpoint/sample_state.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

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

TEST_F(ReleaseCommand, ARequestIsNotWrittenIntoACheckpoint) {
  const CommandRun run = request("checkpoints/step-00000001/release.json");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(run.err, HasSubstr("lies in the checkpoint " + path("checkpoints/step-00000001")));
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

TEST_F(ReleaseCommand, WhoGetsItAndWhyAreTextsThatPeopleCanRead) {
  const auto asked = [&](const std::string& recipient, const std::string& reason) {
    return release({"request", path("checkpoints"), "--out", path("r"), "--recipient", recipient,
                    "--reason", reason});
  };
  for (const CommandRun& run : {asked("", "y"), asked("X", ""), asked(" \t\n", "y")}) {
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
    EXPECT_THAT(run.err, HasSubstr("it is empty"));
  }
  const CommandRun run = asked(std::string(1001, 'x'), "y");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(run.err, HasSubstr("it has 1001 bytes, and can have 1000 at most"));
  EXPECT_FALSE(fs::exists(path("r")));
  EXPECT_EQ(asked(std::string(1000, 'x'), "y").code, 0);
}

TEST_F(ReleaseCommand, WhatAReleaseSaysOfACheckpointIsCompared) {
  request_with("label", {{"classification", "public"}});
  for (const CommandRun& run : {sign("sara"), show()}) {
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::bad_data));
    EXPECT_THAT(run.err, HasSubstr("has another label, internal; owner health: ask for a new one"));
  }
  request_with("manifest_sha256", std::string(64, '0'));
  EXPECT_EQ(sign("sara").code, static_cast<int>(ExitCode::bad_data));
  EXPECT_THAT(show().err, HasSubstr("has another manifest, sha256:"));
  EXPECT_TRUE(parse_envelope(text_of("release.json"), "").signatures.empty());
}

TEST_F(ReleaseCommand, ACheckpointOfAnotherHostCannotBeCompared) {
  for (const char* const uri :
       {"file:///tmp/harmless", "https://elsewhere/a", "file://checkpoints"}) {
    request_with("uri", uri);
    for (const CommandRun& run : {show(), sign("sara")}) {
      EXPECT_EQ(run.code, 0) << run.err;
      EXPECT_THAT(run.err, AllOf(HasSubstr("note: this host has no whole checkpoint at "),
                                 HasSubstr("could not be compared")));
    }
  }
  fs::remove(path("release.json"));
  request();
  EXPECT_EQ(show().err, "");
}

TEST_F(ReleaseCommand, ASignatureThatIsAddedMeanwhileIsKept) {
  request();
  const std::string unsigned_text = text_of("release.json");
  sign("omar");
  const std::string signed_by_omar = text_of("release.json");
  write("release.json", unsigned_text);
  UniqueHandle<FileDescriptorTraits> lock(::open(path("").c_str(), O_RDONLY | O_DIRECTORY));
  ASSERT_EQ(::flock(lock.get(), LOCK_EX), 0);
  std::thread omar([&] {  // without a lock, sara would have signed by then
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    write("release.json", signed_by_omar);
    lock.reset();
  });
  const CommandRun run = sign("sara");
  omar.join();
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\nsignatures 2\n"));
  EXPECT_EQ(parse_envelope(text_of("release.json"), "").signatures.size(), 2U);
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

}  // namespace
}  // namespace trireme
