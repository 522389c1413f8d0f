#include "src/evidence/folder_check.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "src/base/digest.h"
#include "src/base/file.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class FolderCheckTest : public testing::Test {
 protected:
  FolderCheckTest() {
    make_directories(folder_.path() / "shards");
    put("manifest.json", "{}");
    put("shards/0", std::string(700'000, 'x'));
    put("shards/1", "");
    sign(&key_);
  }
  void put(const std::string& name, const std::string& text) {
    write_file_durably(folder_.path() / name, text);
  }
  void sign(const SigningKey* key) { sign(key, {"manifest.json", "shards/0", "shards/1"}); }
  void sign(const SigningKey* key, const std::vector<std::string>& names) {
    Provenance provenance;
    for (const std::string& name : names) {
      provenance.subjects.push_back({name, sha256_hex(read_file(folder_.path() / name))});
    }
    provenance.builder = "urn:test";
    put(std::string(kProvenanceName),
        bundle_text(make_envelope(std::string(kStatementType), statement_text(provenance), key),
                    ""));
  }
  FolderCheck check() { return check_folder(folder_.path(), {trusted_, 2, {"PINNED"}}); }
  void expect_fault(ExitCode code, const std::string& what) {
    const FolderCheck found = check();
    ASSERT_EQ(found.faults.size(), 1U) << what;
    EXPECT_EQ(found.faults[0].code, code);
    EXPECT_THAT(found.faults[0].what, HasSubstr(what));
  }

  TempFolder folder_;
  const SigningKey key_ = SigningKey::generate();
  const SigningKey other_ = SigningKey::generate();
  const std::vector<TrustedKey> trusted_ = {{key_.public_key(), "ours"}};
};

TEST_F(FolderCheckTest, AcceptsWhatWasSigned) {
  put("PINNED", "");
  const FolderCheck found = check();
  EXPECT_TRUE(found.faults.empty());
  EXPECT_EQ(found.files, 3);
  EXPECT_EQ(found.bytes, 700'002);
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_THAT(found.notes[0], HasSubstr("PINNED is not signed"));
}

TEST_F(FolderCheckTest, FindsChangedFiles) {
  put("shards/0", std::string(699'999, 'x') + "y");
  expect_fault(ExitCode::bad_data, "shards/0 was changed: its SHA-256 is");
}

TEST_F(FolderCheckTest, FindsCutFiles) {
  put("shards/0", std::string(699'999, 'x'));
  expect_fault(ExitCode::bad_data, "shards/0 was changed");
}

TEST_F(FolderCheckTest, FindsMissingFiles) {
  fs::remove(folder_.path() / "shards/1");
  expect_fault(ExitCode::bad_data, "shards/1 is missing: the provenance names it");
}

TEST_F(FolderCheckTest, FindsFoldersInPlaceOfFiles) {
  fs::remove(folder_.path() / "shards/1");
  fs::create_directory(folder_.path() / "shards/1");
  expect_fault(ExitCode::bad_data, "shards/1 is missing: the provenance names it; a folder has");
}

TEST_F(FolderCheckTest, FindsNamesThatNoFileCanHave) {
  Provenance provenance;
  provenance.subjects = {{std::string(300, 'n'), std::string(64, 'a')}};
  provenance.builder = "urn:test";
  fs::remove_all(folder_.path() / "shards");
  fs::remove(folder_.path() / "manifest.json");
  put(std::string(kProvenanceName),
      to_text(make_envelope(std::string(kStatementType), statement_text(provenance), &key_)));
  expect_fault(ExitCode::bad_data, "nnn is missing: the provenance names it");
}

TEST_F(FolderCheckTest, FindsNamesThatStandTwice) {
  sign(&key_, {"manifest.json", "shards/0", "shards/1", "shards/0"});
  expect_fault(ExitCode::bad_data, "the provenance names shards/0 twice");
}

TEST_F(FolderCheckTest, FindsAddedFolders) {
  fs::create_directory(folder_.path() / "shard");
  expect_fault(ExitCode::bad_data, "shard was added: the provenance names no file in it");
  fs::remove(folder_.path() / "shard");
  fs::create_directory(folder_.path() / "shards/2");
  expect_fault(ExitCode::bad_data, "shards/2 was added: the provenance names no file in it");
}

TEST_F(FolderCheckTest, FindsAddedFiles) {
  put("shards/2", "");
  expect_fault(ExitCode::bad_data, "shards/2 was added: the provenance does not name it");
}

TEST_F(FolderCheckTest, NamesWhatAnInterruptedChangeOfKeysLeft) {
  put("keys.json.tmp-4711", "{}");
  const FolderCheck found = check();
  EXPECT_TRUE(found.faults.empty());
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_THAT(found.notes[0], HasSubstr("keys.json.tmp-4711 is what an interrupted change"));
  fs::remove(folder_.path() / "keys.json.tmp-4711");
  for (const std::string name : {"keys.json.tmp-", "keys.json.tmp-1x", "shards/keys.json.tmp-1"}) {
    put(name, "{}");
    expect_fault(ExitCode::bad_data, name + " was added");
    fs::remove(folder_.path() / name);
  }
}

TEST_F(FolderCheckTest, FindsLinks) {
  fs::rename(folder_.path() / "shards/1", folder_.path() / "../elsewhere");
  fs::create_symlink("../../elsewhere", folder_.path() / "shards/1");
  expect_fault(ExitCode::bad_data, "shards/1 is a symbolic link");
  fs::remove(folder_.path() / "../elsewhere");
}

TEST_F(FolderCheckTest, FindsPipes) {
  fs::remove(folder_.path() / "manifest.json");
  ASSERT_EQ(::mkfifo((folder_.path() / "manifest.json").c_str(), 0600), 0);
  expect_fault(ExitCode::bad_data, "manifest.json is not a regular file");
}

TEST_F(FolderCheckTest, FindsAMissingStatement) {
  fs::remove(folder_.path() / kProvenanceName);
  expect_fault(ExitCode::refused, "nothing in it is signed");
}

TEST_F(FolderCheckTest, ReadsNoBundleThatIsTooLarge) {
  fs::resize_file(folder_.path() / kProvenanceName, kMostBundleBytes + 1);
  expect_fault(ExitCode::bad_data, "has 16777217 bytes, more than the 16777216 that are allowed");
}

TEST_F(FolderCheckTest, FindsOtherSigners) {
  sign(nullptr);
  expect_fault(ExitCode::refused, "line 1 is not signed");
  sign(&other_);
  expect_fault(ExitCode::refused, "which the trust file does not hold");
}

TEST_F(FolderCheckTest, FindsForgedStatements) {
  Provenance provenance;
  provenance.subjects = {{"manifest.json", std::string(64, 'a')}};
  provenance.builder = "urn:test";
  Envelope forged = make_envelope(std::string(kStatementType), statement_text(provenance), &key_);
  forged.payload[forged.payload.find("aaaa")] = 'b';
  put(std::string(kProvenanceName), to_text(forged));
  const FolderCheck found = check();
  EXPECT_THAT(found.faults[0].what, HasSubstr("was changed: the signature is not that of ours"));
  EXPECT_EQ(found.faults[0].code, ExitCode::bad_data);
}

TEST_F(FolderCheckTest, FindsAFolderThatIsGone) {
  fs::remove_all(folder_.path() / "shards");
  EXPECT_EQ(check().faults.size(), 2U);
  const FolderCheck found = check_folder(folder_.path() / "none", {trusted_, 1, {}});
  EXPECT_FALSE(found.faults.empty());
}

}  // namespace
}  // namespace trireme
