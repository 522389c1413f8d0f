#include "src/registry/model_registry.h"

#include <fstream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/registry/model_files.h"
#include "tests/registry/registry_folder.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ModelRegistryTest : public RegistryFolder {};

TEST_F(ModelRegistryTest, NumbersVersionsAndReadsThemBack) {
  const VersionRecord first = added("chat");
  EXPECT_EQ(first.version, 1);
  EXPECT_EQ(added("chat").version, 2);
  EXPECT_EQ(added("code").version, 1);
  EXPECT_THAT(registry().models(), ElementsAre("chat", "code"));
  EXPECT_EQ(registry().version("chat", 1), first);
  EXPECT_EQ(registry().find("chat").version, 2);
  EXPECT_EQ(registry().find("chat:1"), first);
}

TEST_F(ModelRegistryTest, WritersAtTheSameTimeGetNumbersOfTheirOwn) {
  constexpr int kWriters = 8;
  const ModelRegistry shared = registry();
  VersionRecord record = a_version("chat");
  for (int i = 0; i < kWriters; ++i) {
    record.note = std::to_string(i);
    if (::fork() == 0) {
      shared.add(record);
      ::_exit(0);
    }
  }
  for (int i = 0; i < kWriters; ++i) {
    int status = 0;
    ::wait(&status);
    EXPECT_EQ(status, 0);
  }
  std::set<std::string> notes;
  for (const std::int64_t number : shared.version_numbers("chat")) {
    notes.insert(shared.version("chat", number).note);
  }
  EXPECT_EQ(notes.size(), kWriters);
  EXPECT_THAT(shared.version_numbers("chat"), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
}

TEST_F(ModelRegistryTest, GoesBackOneVersionAfterTheOther) {
  for (int i = 0; i < 3; ++i) {
    added("chat");
    promote("chat", i + 1, "production");
  }
  promote("chat", 1, "staging");
  EXPECT_EQ(registry().find("chat@production").version, 3);
  EXPECT_EQ(roll_back("chat", "production").version, 2);
  EXPECT_EQ(roll_back("chat", "production").version, 1);
  EXPECT_EQ(registry().find("chat@production").version, 1);
  EXPECT_THAT(message_of<NotFound>([&] { roll_back("chat", "production"); }),
              HasSubstr("no version before 1"));
  EXPECT_EQ(registry().find("chat@staging").version, 1);
  promote("chat", 3, "production");
  EXPECT_EQ(roll_back("chat", "production").version, 1);
  EXPECT_THAT(message_of<NotFound>([&] { (void)registry().find("chat@testing"); }),
              HasSubstr("no version at the stage testing"));
}

TEST_F(ModelRegistryTest, RefusesNamesAndNumbersThatAreNone) {
  added("chat");
  for (const char* const name : {"", "Chat", "../x", ".hidden", "a/b", "a b", "-a"}) {
    EXPECT_THROW((void)registry().find(name), ConfigError) << name;
    EXPECT_THROW(promote("chat", 1, name), ConfigError) << name;
  }
  for (const char* const reference : {"chat:", "chat:0", "chat:01", "chat:-1", "chat:x", "chat@"}) {
    EXPECT_THROW((void)registry().find(reference), ConfigError) << reference;
  }
  EXPECT_THROW((void)registry().find("chat:2"), NotFound);
  EXPECT_THROW((void)registry().find("none"), NotFound);
  EXPECT_THROW(promote("chat", 2, "production"), NotFound);
}

TEST_F(ModelRegistryTest, MakesARegistryInAnEmptyFolderOnly) {
  std::ofstream(folder_.path() / "notes.txt") << "mine";
  EXPECT_THROW((void)ModelRegistry::open_or_make(folder_.path()), PolicyError);
  EXPECT_THROW((void)ModelRegistry::open(folder_.path()), NotFound);
  EXPECT_THAT(registry().models(), IsEmpty());
  write_file_durably(root() / "registry.json", "{\"schema\": 2}\n");
  EXPECT_THAT(message_of<DataError>([&] { (void)registry(); }), HasSubstr("schema 2"));
}

TEST_F(ModelRegistryTest, RefusesRecordsThatAreDamagedOrNotTheirs) {
  const VersionRecord record = added("chat");
  const fs::path file = registry().version_file("chat", 1);
  const std::string good = record_text(record);
  const auto message_after = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(file) << text;
    return message_of<DataError>([&] { (void)registry().version("chat", 1); });
  };
  EXPECT_THAT(message_after("\"version\": 1", "\"version\": 2"), HasSubstr("not the record of"));
  EXPECT_THAT(message_after("\"schema\": 1", "\"schema\": 9"), HasSubstr("schema 9"));
  EXPECT_THAT(message_after("\"kind\": \"exported\"", "\"kind\": \"magic\""), HasSubstr("magic"));
  EXPECT_THAT(message_after("\"path\": \"/", "\"path\": \""), HasSubstr("root"));
  EXPECT_THAT(message_after(record.sha256, "00"), HasSubstr("64 hexadecimal digits"));
  std::ofstream(file) << good.substr(0, good.size() / 2);
  EXPECT_THROW((void)registry().version("chat", 1), DataError);
}

TEST_F(ModelRegistryTest, RefusesARollbackToWhatWasNotInUse) {
  added("chat");
  added("chat");
  promote("chat", 1, "production");
  ChangeRecord change = promote("chat", 2, "production");
  change.is_rollback = true;
  write_file_durably(registry().change_file("chat", 2), record_text(change));
  EXPECT_THROW((void)registry().find("chat@production"), DataError);
}

TEST_F(ModelRegistryTest, NoticesEveryChangeOfAModelsFiles) {
  const VersionRecord record = added("chat");
  EXPECT_NO_THROW(check_model(record));
  std::ofstream(record.path / "more.json") << "{}";
  EXPECT_THAT(message_of<DataError>([&] { check_model(record); }), HasSubstr("has changed"));
  fs::remove(record.path / "more.json");
  EXPECT_NO_THROW(check_model(record));
  std::ofstream(record.path / "weights.bin", std::ios::app) << "x";
  EXPECT_THROW(check_model(record), DataError);
  fs::remove_all(record.path);
  EXPECT_THROW(check_model(record), NotFound);
}

TEST_F(ModelRegistryTest, ReadsTheFiguresOfAnEvaluation) {
  const fs::path file = folder_.path() / "eval.json";
  std::ofstream(file) << R"({"schema": 2, "step": 7, "loss": 2.5, "perplexity": null,
    "tasks": {"law": {"acc": 0.75}}, "gates": [{"found": 1}], "gates_met": true})";
  std::int64_t step = 0;
  const EvaluationResult result = read_evaluation(file, step);
  EXPECT_EQ(step, 7);
  EXPECT_EQ(result.gates_met, true);
  EXPECT_THAT(result.figures,
              ElementsAre(std::pair("loss", 2.5), std::pair("tasks.law.acc", 0.75)));
  std::ofstream(file) << "[]";
  EXPECT_THROW((void)read_evaluation(file, step), DataError);
}

}  // namespace
}  // namespace trireme
