// Tests which datasets a run accepts, on all ranks alike. Ranks are threads.
#include "src/train/start/open_dataset.h"

#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/data/recode.h"
#include "mpi/thread/thread_world.h"
#include "src/base/error.h"
#include "tests/support/encrypted_files.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"
#include "tests/train/small_data.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class OpenDatasetTest : public testing::Test {
 protected:
  OpenDatasetTest() {
    train_ = pack_documents(temp_.path(), "train", {lesson(500)});
    config_.data.train = {{.name = "train", .path = train_, .weights = {}}};
    held_out_ = pack_documents(temp_.path(), "validation", {lesson(300)});
    config_.data.validation = {{.name = "validation", .path = held_out_}};
    config_.data.sequence = 8;
    config_.model.vocab = 257;
    config_.train.eval_samples = 20;
  }
  // Returns the error about the validation set on every rank.
  template <class Exception>
  std::string refusal() {
    std::string text;
    ThreadWorld(2).run([&](Communicator& comm) {
      const Dataset train = open_dataset(train_, 257, comm);
      const std::string own = message_of<Exception>(
          [&] { (void)open_validation(config_, config_.data.validation[0], train, comm); });
      if (comm.rank() == 1) {
        text = own;
      }
    });
    return text;
  }
  // Changes a byte of the shard's tokens.
  void damage(std::int64_t token) {
    const Dataset dataset = Dataset::open(held_out_);
    const ShardEntry& shard = dataset.manifest().shards.front();
    std::fstream file(held_out_ / shard.path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(shard.data_offset + 2 * token);
    file.put('\x01');
  }

  TempFolder temp_;
  std::filesystem::path train_;
  std::filesystem::path held_out_;
  RunConfig config_;
};

TEST_F(OpenDatasetTest, AllRanksHaveTheSame) {
  ThreadWorld(3).run([&](Communicator& comm) {
    const Dataset train = open_dataset(train_, 257, comm);
    EXPECT_EQ(train.manifest().n_tokens(), 501);
    EXPECT_EQ(
        open_validation(config_, config_.data.validation[0], train, comm).manifest().n_tokens(),
        301);
  });
}

TEST_F(OpenDatasetTest, AllRanksHearWhatRankZeroMissed) {
  ThreadWorld(2).run([&](Communicator& comm) {
    EXPECT_THROW((void)open_dataset(temp_.path() / "none", 257, comm), NotFound);
    EXPECT_THROW((void)open_dataset(temp_.path() / "train_in", 257, comm), DataError);
  });
}

TEST_F(OpenDatasetTest, TheModelNeedsARowPerId) {
  ThreadWorld(2).run([&](Communicator& comm) {
    EXPECT_THAT(
        message_of<ConfigError>([&] { (void)open_dataset(train_, 256, comm); }),
        AllOf(HasSubstr("packed with the tokenizer 'bytes' of 257 ids, but model.vocab is 256"),
              HasSubstr("raise it to 257")));
    EXPECT_NO_THROW((void)open_dataset(train_, 1000, comm));
  });
}

TEST_F(OpenDatasetTest, AValidationSetNeedsOneSample) {
  config_.data.sequence = 301;
  EXPECT_NE(refusal<DataError>(), "");
}

TEST_F(OpenDatasetTest, AValidationSetOfAnotherTokenizerMeansNothing) {
  const auto path = held_out_ / kDatasetManifestName;
  DatasetManifest manifest = parse_dataset_manifest(read_file(path), path.string());
  manifest.tokenizer = "gpt2";
  manifest.tokenizer_digest = std::string(64, 'a');
  write_file_durably(path, manifest_text(manifest));
  EXPECT_THAT(refusal<ConfigError>(),
              AllOf(HasSubstr("was made with the tokenizer 'gpt2' (257 ids, aaaaaaaaaaaa)"),
                    HasSubstr("with 'bytes' (257 ids, "), HasSubstr("mean different text")));
}

TEST_F(OpenDatasetTest, DamageWhereEvaluationsReadIsFoundAtTheStart) {
  damage(100);
  EXPECT_THAT(refusal<DataError>(), HasSubstr("00000.h5"));
}

class EncryptedData : public OpenDatasetTest {
 protected:
  EncryptedData() {
    encrypt(train_);
    encrypt(held_out_);
  }
  void encrypt(const std::filesystem::path& folder) const {
    recode({folder, true, dataset_key_maker(ring_), {}}, {});
  }

  const std::string key_ = new_key(temp_.path(), "site");
  const KeyRing ring_{std::vector<std::string>{key_}};
};

// On two hosts, whose first ranks open the key.
TEST_F(EncryptedData, AllRanksCanRead) {
  ThreadWorld(4, {"a", "a", "b", "b"}).run([&](Communicator& comm) {
    SharedKeys keys(comm, {key_});
    const Dataset train = open_dataset(train_, 257, comm, {&keys, false});
    const Dataset validation =
        open_validation(config_, config_.data.validation[0], train, comm, {&keys, false});
    std::vector<std::int32_t> tokens(40);
    std::vector<std::byte> scratch;
    for (const Dataset* const dataset : {&train, &validation}) {
      dataset->read({0, 0, 40}, tokens, scratch);
      EXPECT_EQ(std::string(tokens.begin(), tokens.end()), lesson(40));
    }
  });
}

TEST_F(EncryptedData, AllRanksRefuseAWrongOrMissingKey) {
  const std::string other = new_key(temp_.path(), "other");
  ThreadWorld(3, {"a", "a", "b"}).run([&](Communicator& comm) {
    EXPECT_THAT(message_of<PolicyError>([&] { (void)open_dataset(train_, 257, comm); }),
                HasSubstr("no key was given"));
    SharedKeys keys(comm, {other});
    EXPECT_THAT(message_of<PolicyError>([&] {
                  (void)open_dataset(train_, 257, comm, {&keys, true});
                }),
                HasSubstr("is encrypted for file"));
  });
}

TEST_F(EncryptedData, AllRanksHearOfForgedKeys) {
  const auto other = held_out_ / "keys.json";
  write_file_durably(train_ / "keys.json", read_file(other));
  ThreadWorld(2).run([&](Communicator& comm) {
    SharedKeys keys(comm, {key_});
    EXPECT_THAT(message_of<DataError>([&] {
                  (void)open_dataset(train_, 257, comm, {&keys, false});
                }),
                HasSubstr("belongs to another manifest"));
  });
}

TEST_F(OpenDatasetTest, PlainInsteadOfEncrypted) {
  const std::string key = new_key(temp_.path(), "site");
  ThreadWorld(2).run([&](Communicator& comm) {
    SharedKeys keys(comm, {key});
    const DatasetKeys strict{&keys, false};
    EXPECT_THAT(message_of<PolicyError>([&] { (void)open_dataset(train_, 257, comm, strict); }),
                AllOf(HasSubstr("trireme data encrypt"), HasSubstr("accept_plain_data=true")));
    const Dataset train = open_dataset(train_, 257, comm, {&keys, true});
    EXPECT_THROW((void)open_validation(config_, config_.data.validation[0], train, comm, strict),
                 PolicyError);
    EXPECT_NO_THROW(
        (void)open_validation(config_, config_.data.validation[0], train, comm, {&keys, true}));
    SharedKeys none(comm, {});
    EXPECT_NO_THROW((void)open_dataset(train_, 257, comm, {&none, false}));
  });
}

TEST(OpenDataset, NamesTheLimitOfOpenFiles) {
  EXPECT_EQ(lack_of_open_files("data/train", 300, 1024), "");
  EXPECT_THAT(lack_of_open_files("data/train", 301, 64),
              AllOf(HasSubstr("data/train: a run keeps 301 shards open"), HasSubstr("only 64"),
                    HasSubstr("ulimit -n")));
}

}  // namespace
}  // namespace trireme
