// `trireme data ls` on folders with datasets that are whole, damaged, encrypted or unfinished.
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "mpi/self_communicator.h"
#include "src/app/data/data_command.h"
#include "tests/app/command_run.h"
#include "tests/io/data/data_fixture.h"
#include "tests/support/without_policy.h"

namespace trireme {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Words = std::vector<std::string>;

class DataLs : public DataTest {
 protected:
  DataLs() {
    write("in/a.txt", "a ship");
    write("in/b.txt", "a harbour");
  }
  CommandRun ls(Words words) {
    words.insert(words.begin(), {"data", "ls"});
    return run_command_line(
        [this](CommandLine& app, int& exit_code) {
          add_data_command(
              app, [this]() -> Communicator& { return self_; }, without_policy(), exit_code);
        },
        words);
  }
  // Returns what `ls --json` says of the folder with this name.
  json found(const std::string& name) {
    const CommandRun run = ls({"--json", folder_.string()});
    EXPECT_EQ(run.code, 0) << run.err;
    const json document = json::parse(run.out);
    for (const json& each : document.at("datasets")) {
      if (each.at("folder") == (folder_ / name).string()) {
        return each;
      }
    }
    ADD_FAILURE() << name << " is not listed in " << run.out;
    return {};
  }
  void make(const std::string& name) const { pack(options("in", name), {}); }

 private:
  SelfCommunicator self_;
};

TEST_F(DataLs, ListsDatasetsBelowAFolder) {
  make("x/train");
  make("validation");
  const CommandRun run = ls({folder_.string()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(std::count(run.out.begin(), run.out.end(), '\n'), 3) << "a line with the heads, too";
  const std::size_t first = run.out.find((folder_ / "validation").string());
  EXPECT_LT(first, run.out.find((folder_ / "x/train").string())) << "sorted by path";
  EXPECT_THAT(run.out, Not(HasSubstr("INVALID")));
  const CommandRun itself = ls({(folder_ / "x/train").string()});
  EXPECT_THAT(itself.out, AllOf(HasSubstr("x/train"), Not(HasSubstr("validation"))));
}

TEST_F(DataLs, JsonHasWhatTheManifestSays) {
  make("data");
  const json one = found("data");
  EXPECT_EQ(one.at("valid"), true);
  EXPECT_EQ(one.at("documents"), 2);
  EXPECT_EQ(one.at("tokens"), 6 + 9 + 2) << "the bytes, and an end of each document";
  EXPECT_EQ(one.at("vocab"), 257);
  EXPECT_EQ(one.at("encrypted"), false);
  EXPECT_EQ(one.at("digest"), Dataset::open(folder_ / "data").manifest().digest());
  EXPECT_FALSE(one.contains("problem"));
}

TEST_F(DataLs, SaysWhatIsWrongWithADataset) {
  make("good");
  make("bad");
  const fs::path manifest = folder_ / "bad/manifest.json";
  fs::permissions(manifest, fs::perms::owner_all);
  std::ofstream(manifest) << "{";
  const json bad = found("bad");
  EXPECT_EQ(bad.at("valid"), false);
  EXPECT_THAT(bad.at("problem").get<std::string>(), Not(IsEmpty()));
  EXPECT_FALSE(bad.contains("tokens"));
  EXPECT_EQ(found("good").at("valid"), true);
  const CommandRun run = ls({folder_.string()});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("\n  INVALID: "));
}

TEST_F(DataLs, ShardsThatAreMissingOrShortAreSeen) {
  make("data");
  const fs::path shard = folder_ / "data/shards/00000.h5";
  fs::permissions(shard, fs::perms::owner_all);
  fs::resize_file(shard, fs::file_size(shard) - 1);
  EXPECT_THAT(found("data").at("problem").get<std::string>(), HasSubstr("00000.h5"));
  fs::remove(shard);
  EXPECT_THAT(found("data").at("problem").get<std::string>(), HasSubstr("00000.h5"));
}

TEST_F(DataLs, NothingToListIsSaid) {
  const CommandRun none = ls({folder_.string()});
  EXPECT_EQ(none.code, static_cast<int>(ExitCode::not_found));
  EXPECT_THAT(none.err, HasSubstr("no datasets here or below: make one with trireme data pack"));
  const CommandRun json_of_none = ls({"--json", folder_.string()});
  EXPECT_EQ(json_of_none.code, 0) << "an empty list is an answer for a script";
  EXPECT_TRUE(json::parse(json_of_none.out).at("datasets").empty());
  EXPECT_EQ(ls({(folder_ / "absent").string()}).code, static_cast<int>(ExitCode::not_found));
}

// Names of folders may hold anything but must not reach the terminal as they are.
TEST_F(DataLs, PrintsNoControlCharacters) {
  make("a\x1b[2Jb");
  EXPECT_THAT(ls({folder_.string()}).out, AllOf(HasSubstr("[2Jb"), Not(HasSubstr("\x1b"))));
}

}  // namespace
}  // namespace trireme
