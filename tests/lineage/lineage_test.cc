#include "src/lineage/lineage.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <pthread.h>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/evidence/model_signature.h"
#include "src/lineage/lineage_walk.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class LineageTest : public testing::Test {
 protected:
  fs::path step(int number) const { return folder_.path() / fmt::format("step-{:08}", number); }
  // Returns the envelope of a step that was resumed from the one before, except for step 1.
  // ancestors: what the statement says about them; negative if it says nothing.
  Envelope envelope(int number, int ancestors) const {
    Provenance provenance;
    provenance.subjects = {{kManifestSubject, sha256_hex(std::to_string(number))}};
    (*provenance.details)["step"] = number;
    (*provenance.details)["generation"] = 3;
    (*provenance.details)["checkpoints"] = file_uri(folder_.path().string());
    if (ancestors >= 0) {
      (*provenance.details)[kAncestorsDetail] = ancestors;
    } else {
      (*provenance.details)["lineage"] = kLineageUnreadable;
    }
    provenance.builder = "urn:test";
    if (number > 1) {
      const fs::path parent = step(number - 1) / kManifestSubject;
      provenance.materials = {
          {"parent", file_uri(parent.string()), sha256_hex(std::to_string(number - 1))}};
    }
    return make_envelope(std::string(kStatementType), statement_text(provenance), &key_);
  }
  // Returns the envelope of a step that was made from these models.
  Envelope made_with(const std::vector<Material>& models, int number = 9) const {
    Provenance provenance;
    provenance.subjects = {{kManifestSubject, sha256_hex(std::to_string(number))}};
    (*provenance.details)["step"] = number;
    (*provenance.details)["checkpoints"] = file_uri(folder_.path().string());
    (*provenance.details)[kAncestorsDetail] = 0;
    provenance.builder = "urn:test";
    provenance.materials = models;
    return make_envelope(std::string(kStatementType), statement_text(provenance), &key_);
  }
  // Returns what names another step.
  Material manifest_of(const std::string& name, int number) const {
    return {name, file_uri((step(number) / kManifestSubject).string()),
            sha256_hex(std::to_string(number))};
  }
  void save(int number, const std::string& bundle) const {
    fs::create_directory(step(number));
    std::ofstream(step(number) / kManifestSubject) << number;
    std::ofstream(step(number) / kProvenanceName) << bundle;
  }
  // Saves the steps 1 to `last`, each with the lines of its ancestors. Returns the last bundle.
  std::string save_chain(int last) const {
    std::string bundle;
    for (int number = 1; number <= last; ++number) {
      bundle = bundle_text(envelope(number, number - 1), bundle);
      save(number, bundle);
    }
    std::ofstream(folder_.path() / "GENERATION") << "3\n";
    return bundle;
  }
  Lineage walk(const fs::path& what) const {
    return walk_lineage(what, {{{key_.public_key(), "ours"}}, 1, {}});
  }
  static std::string faults_of(const Lineage& lineage) {
    std::string all;
    for (const EvidenceFault& fault : lineage.faults) {
      all += fault.what + "\n";
    }
    return all;
  }

  TempFolder folder_;
  const SigningKey key_ = SigningKey::generate();
};

// Each bundle has only its own line.
TEST_F(LineageTest, FollowsALimitedNumberOfParents) {
  constexpr int kSteps = 1030;
  for (int number = 1; number <= kSteps; ++number) {
    save(number, to_text(envelope(number, -1)));
  }
  const Lineage lineage = walk(step(kSteps));
  EXPECT_EQ(lineage.files, 1025);
  EXPECT_EQ(lineage.code(), ExitCode::not_found);
  EXPECT_THAT(lineage.items.back().place, HasSubstr("step-00000005"));
  const auto is_limit = [](const EvidenceFault& fault) {
    return fault.what.find("more than 1024 generations") != std::string::npos;
  };
  EXPECT_EQ(std::count_if(lineage.faults.begin(), lineage.faults.end(), is_limit), 1);
}

// The walk must not need more stack for more models.
TEST_F(LineageTest, FollowsALimitedNumberOfBasesOnASmallStack) {
  constexpr int kSteps = 1030;
  save(1, to_text(made_with({}, 1)));
  for (int number = 2; number <= kSteps; ++number) {
    save(number,
         to_text(made_with({manifest_of("base", number - 1), manifest_of("teacher", number - 1)},
                           number)));
  }
  Lineage lineage;
  std::function<void()> body = [&] { lineage = walk(step(kSteps)); };
  pthread_attr_t small;
  ASSERT_EQ(::pthread_attr_init(&small), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&small, std::size_t{512} << 10), 0);
  pthread_t thread{};
  const auto start = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  ASSERT_EQ(::pthread_create(&thread, &small, start, &body), 0);
  ASSERT_EQ(::pthread_join(thread, nullptr), 0);
  ASSERT_EQ(::pthread_attr_destroy(&small), 0);
  EXPECT_EQ(lineage.files, 1025);
  EXPECT_EQ(lineage.code(), ExitCode::not_found);
  EXPECT_THAT(faults_of(lineage), HasSubstr("step-00000005/manifest.json was not checked, because "
                                            "it is more than 1024 generations away"));
}

TEST_F(LineageTest, FindsADamagedCountOfStarts) {
  save_chain(2);
  const fs::path file = folder_.path() / "GENERATION";
  for (const char* const good : {"3", "3\n", "4\n"}) {
    std::ofstream(file) << good;
    EXPECT_EQ(walk(folder_.path()).code(), ExitCode::ok) << good;
  }
  for (const char* const bad : {"", "x\n", "-5\n", "4 starts\n", "4\n\n"}) {
    std::ofstream(file) << bad;
    const Lineage lineage = walk(folder_.path());
    EXPECT_EQ(lineage.code(), ExitCode::bad_data) << bad;
    EXPECT_EQ(faults_of(lineage),
              file.string() +
                  " does not hold just a number: which starts of the run have saved "
                  "its steps was not checked\n");
  }
  for (const char* const bad : {"99999999999999999999", "1000000000\n"}) {
    std::ofstream(file) << bad;
    EXPECT_THAT(faults_of(walk(folder_.path())),
                HasSubstr("counts 1000000000 starts or more, which no run has had"));
  }
  std::ofstream(file) << "2\n";
  EXPECT_THAT(faults_of(walk(folder_.path())), HasSubstr("was saved by start 3 of its run, but"));
}

// A copy may lack the file.
TEST_F(LineageTest, MissesTheCountOfStarts) {
  save_chain(2);
  fs::remove(folder_.path() / "GENERATION");
  const Lineage gone = walk(folder_.path());
  EXPECT_EQ(gone.code(), ExitCode::not_found);
  EXPECT_THAT(faults_of(gone), testing::StartsWith((folder_.path() / "GENERATION").string() +
                                                   " is gone, in which each start of the run"));
  EXPECT_EQ(walk(step(2)).code(), ExitCode::ok) << "a step by itself needs no count";
  const TempFolder archive;
  fs::copy(folder_.path(), archive.path(), fs::copy_options::recursive);
  LineageOptions options{{{key_.public_key(), "ours"}}, 1, {}};
  options.moved = {{folder_.path().string(), archive.path().string()}};
  const Lineage copy = walk_lineage(archive.path(), options);
  EXPECT_EQ(copy.code(), ExitCode::ok) << faults_of(copy);
  EXPECT_THAT(copy.notes, testing::ElementsAre(HasSubstr("GENERATION was not copied")));
}

TEST_F(LineageTest, FindsLinesThatWereCutOffAfterTheParentsAreGone) {
  const std::string bundle = save_chain(4);
  EXPECT_EQ(walk(step(4)).code(), ExitCode::ok);
  for (int number = 1; number < 4; ++number) {
    fs::remove_all(step(number));
  }
  const Lineage gone = walk(step(4));
  EXPECT_EQ(gone.code(), ExitCode::not_found);
  EXPECT_EQ(gone.faults.size(), 3U);
  EXPECT_THAT(faults_of(gone), HasSubstr("line 2 of " + (step(4) / kProvenanceName).string() +
                                         " still proves which files it had"));
  std::size_t end = 0;
  for (int lines = 1; lines < 4; ++lines) {
    end = bundle.find('\n', end) + 1;
    save(4, bundle.substr(0, end));
    const Lineage cut = walk(step(4));
    EXPECT_EQ(cut.code(), ExitCode::bad_data) << lines;
    EXPECT_THAT(faults_of(cut), HasSubstr("states that there are 3: lines were removed"));
  }
}

TEST_F(LineageTest, SaysWhatIsLeftOfAParentThatIsGone) {
  for (const auto& [ancestors, what] :
       {std::pair(0, "it had no provenance when a run was resumed from it: all that is signed of"),
        std::pair(-1, "its provenance could not be read when a run was resumed from it: all")}) {
    save(2, to_text(envelope(2, ancestors)));
    const Lineage lineage = walk(step(2));
    EXPECT_EQ(lineage.code(), ExitCode::not_found);
    EXPECT_THAT(faults_of(lineage), HasSubstr(what));
    EXPECT_THAT(faults_of(lineage), HasSubstr("had the SHA-256 " + sha256_hex("1")));
  }
}

TEST_F(LineageTest, AStepThatIsGoneIsNoDamage) {
  LineageWalk walk({{{key_.public_key(), "ours"}}, 1, {}});
  EXPECT_FALSE(walk.step(step(7), 0, "checkpoint"));
  EXPECT_TRUE(walk.lineage.faults.empty());
  EXPECT_TRUE(walk.lineage.items.empty());
  save(7, to_text(envelope(7, 0)));
  EXPECT_TRUE(walk.step(step(7), 0, "checkpoint"));
}

// Deletes steps as the retention of a live run does.
TEST_F(LineageTest, ARunThatDeletesStepsMeanwhileIsNoDamage) {
  constexpr int kSteps = 60;
  (void)save_chain(kSteps);
  std::atomic<bool> ends = false;
  std::jthread retention([&] {
    for (int number = 1; number < kSteps; ++number) {
      const fs::path trash = folder_.path() / fmt::format(".trash-{}-1", number);
      fs::rename(step(number), trash);
      fs::remove_all(trash);
    }
    ends = true;
  });
  bool has_ended = false;
  while (!has_ended) {
    has_ended = ends;
    for (const EvidenceFault& fault : walk(folder_.path()).faults) {
      EXPECT_EQ(fault.code, ExitCode::not_found) << fault.what;
    }
  }
}

TEST_F(LineageTest, FindsAStepOfAnotherFolder) {
  save_chain(1);
  EXPECT_EQ(walk(folder_.path()).code(), ExitCode::ok);
  const TempFolder other;
  fs::copy(step(1), other.path() / step(1).filename());
  const Lineage lineage = walk(other.path());
  EXPECT_EQ(lineage.code(), ExitCode::bad_data);
  EXPECT_THAT(faults_of(lineage), HasSubstr("a step of another run was put here"));
}

TEST_F(LineageTest, FindsAStepThatWasRenamed) {
  save_chain(1);
  fs::rename(step(1), step(3));
  const Lineage lineage = walk(step(3));
  EXPECT_EQ(lineage.code(), ExitCode::bad_data);
  EXPECT_THAT(faults_of(lineage), HasSubstr("holds step 1, as its provenance states"));
}

TEST_F(LineageTest, FindsWhatIsNoStep) {
  save_chain(1);
  const fs::path more = folder_.path() / "more";
  std::ofstream(more) << "more";
  EXPECT_EQ(faults_of(walk(folder_.path())),
            more.string() + " was added: it is no step of this folder\n");
  fs::remove(more);
  const TempFolder elsewhere;
  fs::rename(step(1), elsewhere.path() / "step");
  fs::create_directory_symlink(elsewhere.path() / "step", step(1));
  EXPECT_THAT(faults_of(walk(folder_.path())), HasSubstr("is a symbolic link: a step of this"));
}

class ModelTest : public LineageTest {
 protected:
  ModelTest() {
    fs::create_directories(model_ / "more");
    put("config.json", "{}");
    put("more/weights.bin", "weights");
    sign();
  }
  void put(const char* name, const char* text) const { std::ofstream(model_ / name) << text; }
  void sign() const {
    ModelStatement statement;
    statement.name = "model";
    statement.files = {{"config.json", sha256_hex("{}")},
                       {"more/weights.bin", sha256_hex("weights")}};
    statement.checkpoint = sha256_hex("manifest");
    statement.step = 7;
    std::ofstream(model_ / kModelSignatureName) << model_signature_text(statement, signer_);
  }
  Lineage check() const { return walk_lineage(model_, {{{signer_.public_key(), "ours"}}, 1, {}}); }

  const SigningKey signer_ = SigningKey::generate(PublicKey::Kind::ecdsa_p256);
  const fs::path model_ = folder_.path() / "model";
};

TEST_F(ModelTest, IsNotSignedWithoutItsSignature) {
  put("model.safetensors", "weights");
  fs::remove(model_ / kModelSignatureName);
  EXPECT_THAT(message_of<PolicyError>([&] { (void)check(); }),
              HasSubstr("model has no model.sig: the model is not signed"));
}

TEST_F(ModelTest, IsCheckedFileByFile) {
  const Lineage whole = check();
  EXPECT_EQ(whole.code(), ExitCode::ok) << faults_of(whole);
  EXPECT_EQ(whole.files, 2);
  EXPECT_THAT(whole.items[0].facts, testing::Contains(HasSubstr("step 7")));
  put("more/weights.bin", "Weights");
  put("more/extra.bin", "x");
  fs::remove(model_ / "config.json");
  const Lineage changed = check();
  EXPECT_EQ(changed.code(), ExitCode::bad_data);
  EXPECT_THAT(faults_of(changed), HasSubstr("weights.bin was changed"));
  EXPECT_THAT(faults_of(changed), HasSubstr("extra.bin was added: model.sig does not name it"));
  EXPECT_THAT(faults_of(changed), HasSubstr("config.json is missing: model.sig names it"));
}

TEST_F(ModelTest, IsNotReadUnlessATrustedKeyHasSignedIt) {
  const Lineage other = walk(model_);
  EXPECT_EQ(other.code(), ExitCode::refused);
  EXPECT_EQ(other.bytes, 0);
  EXPECT_THAT(faults_of(other), HasSubstr("the files that it names were not read"));
  fs::remove(model_ / kModelSignatureName);
  std::ofstream(folder_.path() / "elsewhere") << R"("a secret that nobody shall read here)";
  for (const fs::path& target : {fs::path("/dev/null"), folder_.path() / "elsewhere"}) {
    fs::create_symlink(target, model_ / kModelSignatureName);
    EXPECT_THAT(message_of<DataError>([&] { (void)check(); }),
                testing::AllOf(HasSubstr("is a symbolic link"), testing::Not(HasSubstr("secret"))));
    fs::remove(model_ / kModelSignatureName);
  }
}

TEST_F(ModelTest, NamesWhatItsStatementLeavesOut) {
  const fs::path golden = fs::path(MODEL_GOLDEN_PATH);
  fs::copy(golden / "model", folder_.path() / "foreign", fs::copy_options::recursive);
  fs::create_directories(folder_.path() / "foreign/.git/objects");
  std::ofstream(folder_.path() / "foreign/.git/objects/x") << "x";
  const Lineage lineage =
      walk_lineage(folder_.path() / "foreign", {load_trusted_keys(golden / "model.pub"), 1, {}});
  EXPECT_EQ(lineage.code(), ExitCode::ok) << faults_of(lineage);
  EXPECT_EQ(lineage.files, 3);
  EXPECT_THAT(lineage.notes, testing::ElementsAre(HasSubstr(".git/objects/x is not signed")));
}

// What a run names as its base or teacher is a step of a run that was itself resumed.
TEST_F(LineageTest, FollowsBasesAndTeachers) {
  const fs::path manifest = step(2) / kManifestSubject;
  for (const std::string role : {"base", "teacher"}) {
    save_chain(2);
    save(9, to_text(made_with({manifest_of(role, 2)})));
    const Lineage lineage = walk(step(9));
    EXPECT_EQ(lineage.code(), ExitCode::ok) << faults_of(lineage);
    ASSERT_EQ(lineage.items.size(), 3U);
    EXPECT_EQ(lineage.items[1].role, role);
    EXPECT_EQ(lineage.items[2].role, "parent") << "of the other model";
    const fs::path provenance = step(2) / kProvenanceName;
    const std::string text = read_file(provenance);
    save(9, to_text(made_with({manifest_of(role, 2),
                               {role + std::string(kProvenanceSuffix),
                                file_uri(provenance.string()), sha256_hex(text)}})));
    EXPECT_EQ(walk(step(9)).code(), ExitCode::ok);
    fs::remove(provenance);
    const Lineage removed = walk(step(9));
    EXPECT_EQ(removed.code(), ExitCode::bad_data);
    EXPECT_THAT(faults_of(removed),
                HasSubstr(provenance.string() + " was removed: the provenance"));
    save(9, to_text(made_with({manifest_of(role, 2)})));  // as older versions have signed it
    const Lineage unsigned_model = walk(step(9));
    EXPECT_EQ(unsigned_model.code(), ExitCode::bad_data) << "its manifest is none";
    EXPECT_THAT(faults_of(unsigned_model), HasSubstr("the " + role + " " + step(2).string()));
    EXPECT_THAT(faults_of(unsigned_model), HasSubstr("what it was made from is unknown"));
    std::ofstream(manifest) << "changed";
    const Lineage changed = walk(step(9));
    EXPECT_EQ(changed.code(), ExitCode::bad_data);
    EXPECT_THAT(faults_of(changed), HasSubstr("was changed: its manifest has the SHA-256"));
    fs::remove_all(step(2));
    const Lineage gone = walk(step(9));
    EXPECT_EQ(gone.code(), ExitCode::not_found);
    EXPECT_THAT(faults_of(gone), HasSubstr("the " + role + " " + step(2).string() + " is gone"));
  }
}

}  // namespace
}  // namespace trireme
