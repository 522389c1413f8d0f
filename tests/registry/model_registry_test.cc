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
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::UnorderedElementsAre;

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

TEST_F(ModelRegistryTest, NeverGivesANumberTwice) {
  added("chat");
  added("chat");
  fs::remove(registry().version_file("chat", 2));
  EXPECT_EQ(added("chat").version, 3);
  fs::remove(registry().version_file("chat", 3));
  fs::remove(root() / "models/chat/versions/.number-3");
  EXPECT_EQ(added("chat").version, 2) << "only the mark knows";
  promote("chat", 2, "production");
  fs::remove(registry().version_file("chat", 2));
  fs::remove(root() / "models/chat/versions/.number-2");
  EXPECT_EQ(added("chat").version, 3) << "the change knows, too";
  EXPECT_THAT(message_of<NotFound>([&] { (void)registry().find("chat@production"); }),
              HasSubstr("chat has no version 2; the newest is 3"));
}

TEST_F(ModelRegistryTest, AStageKeepsTheModelThatWasPromoted) {
  added("chat");
  added("chat");
  promote("chat", 1, "production");
  EXPECT_EQ(promote("chat", 2, "production").sha256, registry().version("chat", 2).sha256);
  VersionRecord other = a_version("chat");
  for (const std::int64_t number : {1, 2}) {
    other.version = number;
    write_file_durably(registry().version_file("chat", number), record_text(other));
  }
  EXPECT_THAT(message_of<DataError>([&] { (void)registry().find("chat@production"); }),
              AllOf(HasSubstr("versions/2.json"), HasSubstr("change 2"), HasSubstr(other.sha256)));
  EXPECT_THAT(message_of<DataError>([&] { roll_back("chat", "production"); }),
              HasSubstr("versions/1.json"));
  EXPECT_EQ(registry().find("chat:2"), other) << "nothing was promoted under this name";
  EXPECT_THAT(registry().faults("chat"), ElementsAre(HasSubstr("the stage production: ")));
}

TEST_F(ModelRegistryTest, ARollbackSkipsWhatWasPromotedTwice) {
  added("chat");
  added("chat");
  promote("chat", 1, "production");
  promote("chat", 2, "production");
  ChangeRecord again = promote("chat", 2, "production");
  EXPECT_EQ(roll_back("chat", "production").version, 1);
  EXPECT_EQ(registry().find("chat@production").version, 1);
  EXPECT_THROW(roll_back("chat", "production"), NotFound);
  again.number = 4;
  again.is_rollback = true;  // as earlier programs did it
  write_file_durably(registry().change_file("chat", 4), record_text(again));
  EXPECT_EQ(registry().find("chat@production").version, 2);
}

// Whoever may write to the registry must not lead another user's command to other folders.
TEST_F(ModelRegistryTest, FollowsNoLinkWithinTheRegistry) {
  const fs::path elsewhere = folder_.path() / "elsewhere";
  fs::create_directory(elsewhere);
  const auto refused = [&](const fs::path& link, const auto& work) {
    fs::remove_all(link);
    fs::create_symlink(elsewhere, link);
    EXPECT_THAT(message_of<DataError>(work), HasSubstr(link.string() + " is a symbolic link"));
    EXPECT_TRUE(fs::is_empty(elsewhere)) << link;
    fs::remove(link);
  };
  const auto add = [&] { added("chat"); };
  add();
  const fs::path chat = root() / "models/chat";
  refused(chat / "changes", [&] { promote("chat", 1, "production"); });
  promote("chat", 1, "production");
  refused(chat / "changes", [&] { roll_back("chat", "production"); });
  refused(chat / "versions", add);
  refused(chat, add);
  refused(root() / "models", add);
  add();
  const fs::path record = registry().version_file("chat", 1);
  fs::rename(record, elsewhere / "record");
  fs::create_symlink(elsewhere / "record", record);
  EXPECT_THAT(message_of<DataError>([&] { (void)registry().version("chat", 1); }),
              HasSubstr("1.json is a symbolic link"));
}

TEST_F(ModelRegistryTest, ALinkToTheRegistryItselfIsTheUsers) {
  added("chat");
  fs::create_symlink(root(), folder_.path() / "link");
  EXPECT_EQ(ModelRegistry::open(folder_.path() / "link").find("chat").version, 1);
}

TEST_F(ModelRegistryTest, FindsRecordsThatMeanNothing) {
  added("chat");
  promote("chat", 1, "production");
  EXPECT_THAT(registry().faults("chat"), IsEmpty());
  ChangeRecord change = registry().change("chat", 1);
  change.number = 2;
  change.version = 7;
  change.sha256.clear();
  const fs::path changes = root() / "models/chat/changes";
  write_file_durably(changes / "2.json", record_text(change));
  write_file_durably(changes / "002.json", "{}");
  write_file_durably(changes / "9223372036854775807.json", "{}");
  write_file_durably(changes / "3.json", "{}");
  EXPECT_THAT(registry().faults("chat"),
              UnorderedElementsAre(HasSubstr("changes/002.json has no name of a record"),
                                   HasSubstr("9223372036854775807.json has no name of a record"),
                                   HasSubstr("changes/2.json names version 7"),
                                   HasSubstr("changes/3.json")));
  EXPECT_THAT(registry().strays("chat"), SizeIs(2));
  write_file_durably(root() / "models/.hidden", "");
  write_file_durably(root() / "models/Other", "");
  EXPECT_THAT(registry().strays(),
              UnorderedElementsAre(HasSubstr("002.json"), HasSubstr("9223372036854775807.json"),
                                   HasSubstr("models/Other has no name of a model")));
}

TEST_F(ModelRegistryTest, AnExportedModelIsWhatExportWrites) {
  const auto described = [&](const std::vector<std::string>& files) {
    const fs::path folder = folder_.path() / "exported";
    fs::remove_all(folder);
    for (const std::string& file : files) {
      fs::create_directories((folder / file).parent_path());
      std::ofstream(folder / file) << "x";
    }
    std::vector<std::string> skipped;
    return describe_model(folder, skipped).kind;
  };
  for (const std::vector<std::string>& files :
       std::vector<std::vector<std::string>>{{"config.json", "model-00001-of-00002.safetensors"},
                                             {"adapter_config.json", "adapter_model.safetensors"},
                                             {"model.gguf"},
                                             {"model.onnx", "model.onnx.data"},
                                             {"config.pbtxt", "1/model.onnx"}}) {
    EXPECT_EQ(described(files), ModelKind::exported) << files.front();
  }
  for (const std::vector<std::string>& files :
       std::vector<std::vector<std::string>>{{"notes.txt"},
                                             {"config.json"},
                                             {"model.safetensors"},
                                             {"config.json", "sub/model.safetensors"},
                                             {"1/model.onnx"}}) {
    EXPECT_THAT(message_of<NotFound>([&] { described(files); }), HasSubstr("holds no model"))
        << files.front();
  }
}

TEST_F(ModelRegistryTest, NoticesEveryChangeOfAModelsFiles) {
  const VersionRecord record = added("chat");
  EXPECT_NO_THROW(check_model(record, ModelCheck::contents));
  std::ofstream(record.path / "more.json") << "{}";
  EXPECT_THAT(message_of<DataError>([&] { check_model(record, ModelCheck::contents); }),
              HasSubstr("has changed"));
  fs::remove(record.path / "more.json");
  EXPECT_NO_THROW(check_model(record, ModelCheck::contents));
  std::ofstream(record.path / "model.safetensors", std::ios::app) << "x";
  EXPECT_THROW(check_model(record, ModelCheck::contents), DataError);
  fs::remove_all(record.path);
  EXPECT_THROW(check_model(record, ModelCheck::contents), NotFound);
}

TEST_F(ModelRegistryTest, ReadsTheFiguresOfAnEvaluation) {
  const fs::path file = folder_.path() / "eval.json";
  const std::string digest(64, 'a');
  std::ofstream(file)
      << R"({"manifest_sha256": ")" << digest
      << R"(", "weights": "int8", "tokenizer": {"name": "t"}, "data": {"sequence": 8},
    "schema": 2, "step": 7, "loss": 2.5, "perplexity": null,
    "tasks": {"law": {"acc": 0.75}}, "gates": [{"found": 1}], "gates_met": true})";
  std::int64_t step = 0;
  const EvaluationResult result = read_evaluation(file, step);
  EXPECT_EQ(step, 7);
  EXPECT_EQ(result.gates_met, true);
  EXPECT_EQ(result.manifest_sha256, digest);
  EXPECT_EQ(result.weights, "int8");
  EXPECT_THAT(result.figures,
              ElementsAre(std::pair("loss", 2.5), std::pair("tasks.law.acc", 0.75)));
  for (const char* const wrong : {"[]", R"({"step": 1, "manifest_sha256": "aa"})"}) {
    std::ofstream(file) << wrong;
    EXPECT_THROW((void)read_evaluation(file, step), DataError) << wrong;
  }
  std::ofstream(file) << R"({"step": 1})";
  EXPECT_EQ(read_evaluation(file, step), EvaluationResult()) << "of an earlier version";
  std::ofstream(file) << "[]";
  EXPECT_THROW((void)read_evaluation(file, step), DataError);
}

}  // namespace
}  // namespace trireme
