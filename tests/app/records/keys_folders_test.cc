// `trireme keys` on folders of several encrypted checkpoints and datasets: all or none is changed,
// remains lose their keys, and what is at work there comes first.
#include <map>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "io/checkpoint/run_lock.h"
#include "io/data/pack_folder.h"
#include "src/app/keys/keys_changes.h"
#include "src/app/keys/keys_command.h"
#include "tests/app/command_run.h"
#include "tests/io/checkpoint/encrypted_state.h"
#include "tests/io/data/encrypted_data.h"
#include "tests/support/environment_variables.h"
#include "tests/support/without_policy.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Words = std::vector<std::string>;

class KeysFolders : public EncryptedDataTest {
 protected:
  void SetUp() override {
    fs::create_directories(path("site"));
    variables_.set("TRIREME_SITE_DIR", path("site"));
    write("in/a.txt", "what only some may read");
    pack(sealed_options("in", "sets/one"), {});
    pack(sealed_options("in", "sets/two"), {});
  }
  static CommandRun keys(Words words) {
    words.insert(words.begin(), "keys");
    return run_command_line([](CommandLine& app, int&) { add_keys_command(app, without_policy()); },
                            words);
  }
  CommandRun add_other(const std::string& folder = "sets") const {
    return keys({"add", path(folder), "--key", uri_, "--to", other_});
  }
  CommandRun destroy(const std::string& name) const {
    const std::string word = fs::path(name).filename();
    return keys({"destroy", path(name), "--confirm", word, "--confirm", word});
  }
  // Expects that neither a change nor the destruction of the keys changes a file below the folder.
  void expect_refused(const std::string& name, const std::string& why) const {
    const auto before = files_below();
    const std::string id = KeyFile::load(path("site.key"))->id();
    for (const CommandRun& run : {add_other(name), destroy(name),
                                  keys({"rotate", path(name), "--key", uri_, "--to", other_}),
                                  keys({"remove", path(name), "--key", uri_, "--recipient", id})}) {
      EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused)) << run.out << run.err;
      EXPECT_THAT(run.err, AllOf(HasSubstr("nothing was changed, because "), HasSubstr(why)));
    }
    EXPECT_EQ(files_below(), before);
  }
  std::map<std::string, std::string> files_below() const {
    std::map<std::string, std::string> texts;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder_)) {
      if (entry.is_regular_file()) {
        texts[entry.path()] = read_file(entry.path());
      }
    }
    return texts;
  }
  bool opens(const std::string& set, const std::string& uri) const {
    return fault_of(path(set), KeyRing({uri})).empty();
  }
  std::string text_of(const std::string& name) const { return read_file(path(name)); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  EnvironmentVariables variables_;
  const std::string other_ = new_key(folder_, "other");
};

TEST_F(KeysFolders, AllInAFolderAreChanged) {
  const CommandRun run = add_other();
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr(path("sets/one") + ": "), HasSubstr(path("sets/two") + ": ")));
  EXPECT_TRUE(opens("sets/one", other_));
  EXPECT_TRUE(opens("sets/two", other_));
}

TEST_F(KeysFolders, AMissingKeyChangesNothingAnywhere) {
  ASSERT_EQ(keys({"rotate", path("sets/two"), "--key", uri_, "--to", other_}).code, 0);
  const std::string before = text_of("sets/one/keys.json");
  const CommandRun run = add_other();
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused));
  EXPECT_THAT(run.err, HasSubstr("sets/two"));
  EXPECT_EQ(text_of("sets/one/keys.json"), before);
  EXPECT_EQ(run.out, "");
}

TEST_F(KeysFolders, RemoveChangesOnlyThoseThatHaveTheRecipient) {
  ASSERT_EQ(add_other("sets/one").code, 0);
  const std::string id = KeyFile::load(path("other.key"))->id();
  const CommandRun run = keys({"remove", path("sets"), "--key", uri_, "--recipient", id});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("sets/one"), Not(HasSubstr("sets/two"))));
  EXPECT_FALSE(opens("sets/one", other_));
  const CommandRun both =
      keys({"remove", path("sets"), "--key", uri_, "--recipient", id, "--recipient", "00ff"});
  EXPECT_EQ(both.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(both.err, HasSubstr("'" + id + "', '00ff'"));
}

TEST_F(KeysFolders, CheckpointsAndDatasetsAreListedApart) {
  ASSERT_TRUE(save_encrypted(path("sets"), {uri_}, small_state(), 1).durable);
  const auto found = nlohmann::json::parse(keys({"list", path("sets"), "--json"}).out);
  EXPECT_EQ(found["schema"], 1);
  EXPECT_EQ(found["datasets"].size(), 2U);
  ASSERT_EQ(found["checkpoints"].size(), 1U);
  EXPECT_EQ(found["checkpoints"][0]["path"], path("sets/step-00000001"));
  EXPECT_EQ(add_other().code, 0);
  const KeyOptions with_other{{other_}};
  EXPECT_TRUE(load_encrypted(path("sets"), with_other, small_state()).equal);
}

TEST_F(KeysFolders, ARevokedKeyIsNamedAndStillLetsOthersTakeItsPlace) {
  const std::string id = KeyFile::load(path("site.key"))->id();
  put(path("site/revoked-keys"), id + " stolen\n");
  EXPECT_THAT(keys({"list", path("sets/one")}).out, HasSubstr("is revoked (stolen)"));
  const auto found = nlohmann::json::parse(keys({"list", path("sets/one"), "--json"}).out);
  EXPECT_EQ(found["datasets"][0]["recipients"][0]["revoked"], true);
  EXPECT_EQ(keys({"rotate", path("sets"), "--key", uri_, "--to", other_}).code, 0);
  EXPECT_TRUE(opens("sets/one", other_));
}

TEST_F(KeysFolders, DraftsAndKeysOfDeadAttemptsAreErased) {
  put(path("sets/one/keys.json.123"), "draft");
  ASSERT_TRUE(save_encrypted(path("sets"), {uri_}, small_state(), 1).durable);
  fs::copy(path("sets/step-00000001"), path("sets/.trash-step-00000001"),
           fs::copy_options::recursive);
  const std::string trash = TransientName{TransientName::Kind::trash, 1, 0}.to_string();
  fs::rename(path("sets/.trash-step-00000001"), path("sets/" + trash));
  EXPECT_EQ(add_other().code, 0);
  EXPECT_FALSE(fs::exists(path("sets/one/keys.json.123")));
  EXPECT_FALSE(fs::exists(path("sets/" + trash + "/keys.json")));
  EXPECT_TRUE(fs::exists(path("sets/step-00000001/keys.json")));
}

TEST_F(KeysFolders, AReplacedStepThatALaterRunWouldMoveBackIsChangedAsWell) {
  ASSERT_TRUE(save_encrypted(path("steps"), {uri_}, small_state(), 1).durable);
  const std::string replaced = TransientName{TransientName::Kind::replaced, 1, 0}.to_string();
  fs::rename(path("steps/step-00000001"), path("steps/" + replaced));
  EXPECT_THAT(add_other("steps").out, HasSubstr(replaced));
}

TEST_F(KeysFolders, KeysKeepTheirMode) {
  ASSERT_EQ(::chmod(path("sets/one/keys.json").c_str(), 0640), 0);
  ASSERT_EQ(add_other().code, 0);
  struct stat status {};
  ASSERT_EQ(::stat(path("sets/one/keys.json").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0640U);
}

TEST_F(KeysFolders, KeysOfAnotherManifestAreRefused) {
  fs::copy_file(path("sets/one/keys.json"), path("sets/two/keys.json"),
                fs::copy_options::overwrite_existing);
  for (const CommandRun& run : {add_other(), keys({"list", path("sets/two")})}) {
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::bad_data));
    EXPECT_THAT(run.err, HasSubstr("sets/two/keys.json: belongs to another manifest"));
  }
}

TEST_F(KeysFolders, NothingIsChangedBesideARun) {
  ASSERT_TRUE(save_encrypted(path("steps"), {uri_}, small_state(), 1).durable);
  const RunLock lock(path("steps"), false);
  for (const char* const name : {"steps", "steps/step-00000001"}) {
    for (const CommandRun& run : {add_other(name), destroy(name)}) {
      EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused)) << name;
      EXPECT_THAT(run.err,
                  HasSubstr("nothing was changed, because a run writes to " + path("steps")));
    }
  }
}

TEST_F(KeysFolders, OneCommandWorksInAFolderAtATime) {
  {
    const UniqueHandle<FileDescriptorTraits> other(
        ::open(path("sets").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_EQ(::flock(other.get(), LOCK_EX | LOCK_NB), 0);
    EXPECT_THAT(add_other().err, HasSubstr("another `trireme keys` is at work in " + path("sets")));
  }
  fs::create_directories(path("sets/two/.pack"));
  {
    const auto packing = FileLock::try_take(path("sets/two") + "/" + kPackLockName);
    ASSERT_TRUE(packing.has_value());
    const CommandRun run = add_other();
    EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused));
    EXPECT_THAT(run.err, HasSubstr("another `trireme data` command writes to " + path("sets/two")));
  }
  EXPECT_EQ(add_other().code, 0);
}

TEST_F(KeysFolders, DestroyReachesRemainsAndLeavesTargetsOfLinksAlone) {
  put(path("precious"), "kept");
  put(path("sets/one/keys.json.123"), "draft");
  fs::create_symlink("../../precious", path("sets/two/keys.json.link"));
  fs::create_directories(path("sets/.unfinished/.pack"));
  put(path("sets/.unfinished/.pack/keys.json"), "key of a pack");
  const CommandRun run = destroy("sets");
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("sets/one: its key was destroyed"),
                             HasSubstr("sets/.unfinished: its key was destroyed")));
  EXPECT_FALSE(fs::exists(path("sets/one/keys.json.123")));
  EXPECT_FALSE(fs::exists(path("sets/.unfinished/.pack/keys.json")));
  EXPECT_EQ(text_of("precious"), "kept");
  EXPECT_FALSE(fs::exists(fs::symlink_status(path("sets/two/keys.json.link"))));
  EXPECT_FALSE(opens("sets/one", uri_));
  EXPECT_THAT(keys({"list", path("sets")}).out, HasSubstr("nobody: the key was destroyed"));
  EXPECT_EQ(add_other().code, 0) << "destroyed ones are left as they are";
}

TEST_F(KeysFolders, AFailureDoesNotKeepOtherKeysFromBeingDestroyed) {
  fs::create_directories(path("sets/one/keys.json.folder"));
  const CommandRun run = destroy("sets");
  EXPECT_EQ(run.code, static_cast<int>(ExitCode::io));
  EXPECT_THAT(run.err, AllOf(HasSubstr("not all keys are destroyed; do it again"),
                             HasSubstr("keys.json.folder")));
  EXPECT_FALSE(opens("sets/one", uri_)) << "keys.json goes first";
  EXPECT_FALSE(opens("sets/two", uri_));
  fs::remove(path("sets/one/keys.json.folder"));
  EXPECT_EQ(destroy("sets").code, 0);
  EXPECT_FALSE(opens("sets/one", uri_));
}

TEST_F(KeysFolders, ForeignFifosAndFoldersAreNoObstacle) {
  const std::string fifo = path("sets/one/keys.json.tmp-1");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  fs::create_directories(path("sets/two/keys.json.tmp-1"));
  const CommandRun changed = add_other();
  EXPECT_EQ(changed.code, 0) << changed.err;
  EXPECT_FALSE(fs::exists(fs::symlink_status(fifo)));
  EXPECT_THAT(changed.out, HasSubstr("sets/two/keys.json.tmp-1: left as it is: a folder"));
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(destroy("sets/one").code, 0);
  EXPECT_FALSE(opens("sets/one", uri_));
  EXPECT_THAT(destroy("sets/two").err, HasSubstr("is a folder, which this program has not made"));
  EXPECT_FALSE(opens("sets/two", uri_));
}

TEST_F(KeysFolders, NothingIsAskedAboutAFolderThatIsRefused) {
  fs::create_directories(path("empty"));
  ASSERT_TRUE(save_encrypted(path("steps"), {uri_}, small_state(), 1).durable);
  const RunLock lock(path("steps"), false);
  for (const char* const name : {"empty", "steps"}) {
    const CommandRun run = destroy(name);
    EXPECT_NE(run.code, 0);
    EXPECT_THAT(run.err, Not(HasSubstr("unreadable for everyone")));
  }
}

TEST_F(KeysFolders, KeysOfLogsStayAsTheyAreWhileTheRunLives) {
  fs::create_directories(path("run/log-keys/00"));
  put(path("run/log-keys/00/keys.json"), "keys");
  const auto alive = FileLock::try_take(path("run/.lock"));
  ASSERT_TRUE(alive.has_value());
  for (const char* const name : {"run/log-keys", "run/log-keys/00"}) {
    for (const CommandRun& run : {add_other(name), destroy(name)}) {
      EXPECT_EQ(run.code, static_cast<int>(ExitCode::refused)) << name;
      EXPECT_THAT(run.err, HasSubstr("because a run writes logs to " + path("run")));
    }
  }
  EXPECT_EQ(text_of("run/log-keys/00/keys.json"), "keys");
}

TEST_F(KeysFolders, WithoutAnyKeyThereIsNothingToDestroy) {
  pack(options("in", "plain/one"), {});
  const CommandRun plain = destroy("plain");
  EXPECT_EQ(plain.code, static_cast<int>(ExitCode::usage));
  EXPECT_THAT(plain.err,
              HasSubstr("no checkpoint or dataset in " + path("plain") + " is encrypted"));
  EXPECT_EQ(destroy("absent").code, static_cast<int>(ExitCode::not_found));
}

TEST_F(KeysFolders, AFolderHasOneNameForItsQuestions) {
  EXPECT_EQ(named_folder("/a/b/"), "/a/b");
  EXPECT_EQ(named_folder("/a/./b/../c"), "/a/c");
  EXPECT_EQ(named_folder("."), fs::weakly_canonical("."));
  EXPECT_EQ(named_folder(".."), fs::weakly_canonical(".."));
  EXPECT_THAT(
      keys({"destroy", path("sets/one") + "/.", "--confirm", "one", "--confirm", "one"}).code, 0);
}

TEST_F(KeysFolders, LinkedDatasetsAndStepsAreListedAndRefuseEveryChange) {
  ASSERT_TRUE(save_encrypted(path("archive"), {uri_}, small_state(), 1).durable);
  pack(sealed_options("in", "archive/three"), {});
  fs::create_directory_symlink(path("archive/three"), path("sets/three"));
  ASSERT_EQ(keys({"list", path("sets")}).code, 0);
  EXPECT_THAT(keys({"list", path("sets")}).out, HasSubstr(path("sets/three") + "\n"));
  expect_refused("sets", "sets/three is a symbolic link to " + path("archive/three"));
  fs::rename(path("sets/three"), path("set-aside"));
  fs::create_directory_symlink("../archive/step-00000001", path("sets/step-00000001"));
  EXPECT_THAT(keys({"list", path("sets")}).out, HasSubstr("sets/step-00000001\n"));
  expect_refused("sets", "sets/step-00000001 is a symbolic link to " +
                             path("archive/step-00000001") + ", which has keys of its own");
  EXPECT_TRUE(load_encrypted(path("sets"), KeyOptions{{uri_}}, small_state()).equal);
  fs::remove(path("sets/step-00000001"));
  EXPECT_EQ(destroy("sets").code, 0) << "the way on that the message names";
}

TEST_F(KeysFolders, ALinkToNothingMayHideKeysAndRefusesChanges) {
  fs::create_directory_symlink("/nowhere/step-00000001", path("sets/step-00000001"));
  expect_refused("sets", "which cannot be followed (No such file or directory)");
  fs::rename(path("sets/step-00000001"), path("sets/.#editor"));
  EXPECT_EQ(add_other().code, 0);
}

TEST_F(KeysFolders, ALinkWithinTheFolderIsNoObstacle) {
  fs::create_directory_symlink("one", path("sets/latest"));
  EXPECT_EQ(add_other().code, 0);
  EXPECT_TRUE(opens("sets/latest", other_));
  EXPECT_EQ(destroy("sets").code, 0);
  EXPECT_FALSE(opens("sets/latest", uri_));
}

TEST_F(KeysFolders, AKeysFileThatIsALinkRefusesChanges) {
  fs::rename(path("sets/two/keys.json"), path("wrapped"));
  fs::create_symlink(path("wrapped"), path("sets/two/keys.json"));
  for (const char* const name : {"sets", "sets/two"}) {
    expect_refused(name, "sets/two/keys.json is a symbolic link to " + path("wrapped"));
  }
  fs::remove(path("sets/two/keys.json"));
  fs::rename(path("wrapped"), path("sets/two/keys.json"));
  EXPECT_EQ(destroy("sets").code, 0);
  EXPECT_FALSE(opens("sets/two", uri_));
}

TEST_F(KeysFolders, ADatasetThatIsNamedByALinkIsChangedAndLocked) {
  fs::create_directory_symlink("sets/one", path("alias"));
  EXPECT_EQ(add_other("alias").code, 0);
  EXPECT_TRUE(opens("sets/one", other_));
  EXPECT_EQ(destroy("alias").code, 0);
  EXPECT_FALSE(opens("sets/one", other_));
  ASSERT_TRUE(save_encrypted(path("steps"), {uri_}, small_state(), 1).durable);
  fs::create_directory_symlink("steps/step-00000001", path("step"));
  const RunLock lock(path("steps"), false);
  for (const CommandRun& run : {add_other("step"), destroy("step")}) {
    EXPECT_THAT(run.err, HasSubstr("because a run writes to " + path("steps")));
  }
}

TEST_F(KeysFolders, OnlyFoldersInUseAreListed) {
  fs::create_directory_symlink(path("sets/one"), path("sets/alias"));
  fs::create_directories(path("sets/other"));
  std::vector<std::string> names;
  for (const EncryptedFolder& found : encrypted_folders(path("sets"))) {
    EXPECT_EQ(found.kind, EncryptedKind::dataset);
    EXPECT_FALSE(found.is_destroyed());
    names.push_back(found.folder.filename());
  }
  EXPECT_THAT(names, ElementsAre("one", "two"));
}

}  // namespace
}  // namespace trireme
