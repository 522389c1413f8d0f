#include "src/interchange/carried_files.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class CarriedFiles : public testing::Test {
 protected:
  CarriedFiles() {
    fs::create_directory(model_);
    fs::create_directory(copy_);
    put(secret_, "secret");
  }
  static void put(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string fault() const {
    return message_of<DataError>([&] { copy_carried_files(model_, copy_); });
  }

  TempFolder folder_;
  const fs::path model_ = folder_.path() / "model";
  const fs::path copy_ = folder_.path() / "copy";
  const fs::path secret_ = folder_.path() / "private" / "secret";
};

TEST_F(CarriedFiles, AreCopiedUnchanged) {
  put(model_ / "tokenizer.json", "{}");
  put(model_ / "files/vocab", "{1}");
  put(model_ / "other.json", "not carried");
  fs::create_symlink("files/vocab", model_ / "vocab.json");
  copy_carried_files(model_, copy_);
  EXPECT_EQ(read_file(copy_ / "tokenizer.json"), "{}");
  EXPECT_EQ(read_file(copy_ / "vocab.json"), "{1}");
  EXPECT_FALSE(fs::exists(copy_ / "other.json"));
}

TEST_F(CarriedFiles, DoNotComeFromElsewhere) {
  const fs::path link = model_ / "tokenizer.json";
  const auto refusal = AllOf(HasSubstr(link.string() + " leads out of the model's folder, to " +
                                       fs::canonical(secret_).string()),
                             HasSubstr("replace the symbolic link by the file itself"));
  for (const fs::path& target : {secret_, fs::path("../private/secret")}) {
    fs::create_symlink(target, link);
    EXPECT_THAT(fault(), refusal);
    fs::remove(link);
  }
  fs::create_symlink("more", link);  // a link to a link
  fs::create_symlink(secret_, model_ / "more");
  EXPECT_THAT(fault(), refusal);
  fs::remove(model_ / "more");
  fs::create_directory_symlink(secret_.parent_path(), model_ / "more");
  fs::remove(link);
  fs::create_symlink("more/secret", link);
  EXPECT_THAT(fault(), refusal);
  EXPECT_TRUE(fs::is_empty(copy_));
}

// A folder whose name only begins like that of the model is another one.
TEST_F(CarriedFiles, DoNotComeFromAFolderOfASimilarName) {
  put(folder_.path() / "model-2/vocab.json", "{}");
  fs::create_symlink("../model-2/vocab.json", model_ / "vocab.json");
  EXPECT_THAT(fault(), HasSubstr("leads out of the model's folder"));
}

TEST_F(CarriedFiles, AreNotLeftOutBecauseALinkDangles) {
  fs::create_symlink("/nowhere/tokenizer.json", model_ / "tokenizer.json");
  EXPECT_THAT(fault(), HasSubstr("tokenizer.json is a symbolic link to /nowhere/tokenizer.json, "
                                 "which is missing"));
}

TEST_F(CarriedFiles, AreRegularFiles) {
  const fs::path file = model_ / "tokenizer.model";
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_THAT(fault(), HasSubstr(file.string()));
  fs::remove(file);
  fs::create_symlink("/dev/zero", file);
  EXPECT_THAT(fault(), HasSubstr(file.string()));
  fs::remove(file);
  fs::create_directory(file);
  EXPECT_THAT(fault(), HasSubstr(file.string()));
}

TEST_F(CarriedFiles, MayLieInTheSameCache) {
  const fs::path cache = folder_.path() / "models--a--b";
  const fs::path snapshot = cache / "snapshots/0123";
  put(cache / "blobs/4567", "{}");
  fs::create_directories(snapshot);
  fs::create_symlink("../../blobs/4567", snapshot / "tokenizer.json");
  copy_carried_files(snapshot, copy_);
  EXPECT_EQ(read_file(copy_ / "tokenizer.json"), "{}");
  fs::remove(copy_ / "tokenizer.json");
  const auto refused = [&] {
    return message_of<DataError>([&] { copy_carried_files(snapshot, copy_); });
  };
  fs::remove(cache / "blobs/4567");
  fs::create_symlink(secret_, cache / "blobs/4567");
  EXPECT_THAT(refused(), HasSubstr("leads out of the model's folder"));
  fs::remove_all(cache / "blobs");
  fs::create_directory_symlink(secret_.parent_path(), cache / "blobs");
  fs::remove(snapshot / "tokenizer.json");
  fs::create_symlink("../../blobs/secret", snapshot / "tokenizer.json");
  EXPECT_THAT(refused(), HasSubstr("leads out of the model's folder"));
  fs::remove(snapshot / "tokenizer.json");
  fs::create_symlink("../../../private/secret", snapshot / "tokenizer.json");
  EXPECT_THAT(refused(), HasSubstr("leads out of the model's folder"));
}

}  // namespace
}  // namespace trireme
