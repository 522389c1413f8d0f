#include "src/registry/registry_index.h"

#include <gmock/gmock.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/registry/registry_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class RegistryIndexTest : public RegistryFolder {
 protected:
  fs::path file() const { return root() / "index.sqlite"; }
  // Returns "chat:1@production" for each version that the index finds.
  std::vector<std::string> found(const RegistryQuery& query = {}) const {
    const ModelRegistry registry = this->registry();
    const RegistryIndex index(registry);
    EXPECT_THAT(index.problems(), IsEmpty());
    std::vector<std::string> names;
    for (const auto& [record, stages] : index.versions(query)) {
      names.push_back(fmt::format("{}:{}", record.model, record.version));
      for (const std::string& stage : stages) {
        names.back() += "@" + stage;
      }
    }
    return names;
  }
};

TEST_F(RegistryIndexTest, FollowsTheRecords) {
  EXPECT_THAT(found(), IsEmpty());
  added("chat");
  EXPECT_THAT(found(), ElementsAre("chat:1"));
  added("chat");
  added("code");
  promote("chat", 1, "production");
  EXPECT_THAT(found(), ElementsAre("chat:1@production", "chat:2", "code:1"));
  promote("chat", 2, "production");
  promote("chat", 1, "archive");
  EXPECT_THAT(found(), ElementsAre("chat:1@archive", "chat:2@production", "code:1"));
  roll_back("chat", "production");
  EXPECT_THAT(found(), ElementsAre("chat:1@archive@production", "chat:2", "code:1"));
  fs::remove(registry().version_file("chat", 2));
  fs::remove_all(root() / "models" / "code");
  EXPECT_THAT(found(), ElementsAre("chat:1@archive@production"));
}

TEST_F(RegistryIndexTest, NoticesARecordThatIsReplaced) {
  VersionRecord record = added("chat", {{{"loss", 3}}, {}});
  EXPECT_THAT(found({"", "", {FigureBound::parse("loss<2")}}), IsEmpty());
  record.result.figures["loss"] = 1;
  write_file_durably(registry().version_file("chat", 1), record_text(record));
  EXPECT_THAT(found({"", "", {FigureBound::parse("loss<2")}}), ElementsAre("chat:1"));
}

TEST_F(RegistryIndexTest, AnswersQuestions) {
  added("chat", {{{"loss", 3}, {"tasks.law.acc", 0.5}}, true});
  added("chat", {{{"loss", 2}, {"tasks.law.acc", 0.75}}, true});
  added("code", {{{"loss", 2}}, {}});
  promote("chat", 2, "production");
  EXPECT_THAT(found({"chat", "", {}}), ElementsAre("chat:1", "chat:2@production"));
  EXPECT_THAT(found({"", "production", {}}), ElementsAre("chat:2@production"));
  const auto where = [&](const std::string& text) {
    return found({"", "", {FigureBound::parse(text)}});
  };
  EXPECT_THAT(where("loss<=2"), ElementsAre("chat:2@production", "code:1"));
  EXPECT_THAT(where("loss>2"), ElementsAre("chat:1"));
  EXPECT_THAT(where("loss=3"), ElementsAre("chat:1"));
  EXPECT_THAT(where("tasks.law.acc>=0.6"), ElementsAre("chat:2@production"));
  EXPECT_THAT(found({"", "", {FigureBound::parse("loss<3"), FigureBound::parse("loss>=2")}}),
              ElementsAre("chat:2@production", "code:1"));
  for (const char* const text : {"", "loss", "loss<", "<2", "loss==2", "loss<x", "loss=<2"}) {
    EXPECT_THROW((void)FigureBound::parse(text), ConfigError) << text;
  }
  EXPECT_THAT(where("loss' OR 1=1"), IsEmpty()) << "a name, not a part of the question";
}

TEST_F(RegistryIndexTest, IsMadeAnewIfItIsDamagedOrForeign) {
  added("chat");
  EXPECT_THAT(found(), ElementsAre("chat:1"));
  const std::string good = read_file(file());
  write_file_durably(file(), std::string(10000, 'x'));
  EXPECT_THAT(found(), ElementsAre("chat:1"));
  std::string damaged = good;
  damaged.replace(4096, 4096, std::string(4096, '\xff'));
  write_file_durably(file(), damaged);
  EXPECT_THAT(found(), ElementsAre("chat:1"));
  std::string foreign = good;
  foreign.replace(68, 4, "none");  // where the application's number stands
  write_file_durably(file(), foreign);
  EXPECT_THAT(found(), ElementsAre("chat:1"));
  fs::remove(file());
  EXPECT_THAT(found(), ElementsAre("chat:1"));
}

TEST_F(RegistryIndexTest, WorksInMemoryWhereItCannotBeWritten) {
  added("chat");
  fs::create_directory(file());
  const ModelRegistry registry = this->registry();
  const RegistryIndex index(registry);
  EXPECT_THAT(index.why_in_memory(), HasSubstr("index.sqlite"));
  EXPECT_THAT(index.versions({}), SizeIs(1));
  fs::remove(file());
  fs::create_symlink(folder_.path() / "elsewhere", file());
  EXPECT_THAT(RegistryIndex(registry).versions({}), SizeIs(1));
  EXPECT_FALSE(fs::exists(folder_.path() / "elsewhere"));
}

TEST_F(RegistryIndexTest, NamesDamagedRecordsAndListsTheOthers) {
  added("chat");
  added("chat");
  write_file_durably(registry().version_file("chat", 1), "{}");
  const ModelRegistry registry = this->registry();
  for (int again = 0; again < 2; ++again) {
    const RegistryIndex index(registry);
    EXPECT_THAT(index.problems(), ElementsAre(HasSubstr("versions/1.json")));
    EXPECT_THAT(index.versions({}), SizeIs(1));
  }
}

}  // namespace
}  // namespace trireme
