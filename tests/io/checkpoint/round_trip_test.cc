#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/verify.h"
#include "src/base/digest.h"
#include "src/base/file.h"
#include "tests/io/checkpoint/sample_state.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Computes the digest that logical_digest.h defines, from memory.
std::string expected_digest(State state, bool model) {
  std::sort(state.begin(), state.end(),
            [](const LogicalTensor& a, const LogicalTensor& b) { return a.name < b.name; });
  Sha256 digest;
  for (const LogicalTensor& tensor : state) {
    if (model && tensor.name.starts_with("optimizer.")) {
      continue;
    }
    digest.update(tensor.name + '\0' + std::string(dtype_name(tensor.dtype)) + '\0' +
                  tensor.shape.to_string() + '\0');
    digest.update(tensor.bytes.data(), static_cast<std::int64_t>(tensor.bytes.size()));
  }
  return "sha256:" + digest.finish_hex();
}

class RoundTrip : public testing::TestWithParam<NamedCut> {
 protected:
  TempFolder folder_;
};

TEST_P(RoundTrip, LoadsUnderEveryOtherCutWithTheSameDigest) {
  const State state = small_state();
  const SaveOutcome outcome =
      save_state(folder_.path(), state, 100, GetParam().cut, GetParam().ranks);
  ASSERT_TRUE(outcome.durable) << outcome.message;
  EXPECT_EQ(outcome.message, "");
  EXPECT_GT(outcome.bytes, 0);
  for (const NamedCut& other : all_cuts()) {
    const LoadedState loaded = load_state(folder_.path(), state, other.cut, other.ranks);
    ASSERT_TRUE(loaded.resumed.has_value()) << other.name;
    EXPECT_TRUE(loaded.equal) << other.name;
    EXPECT_THAT(loaded.resumed->skipped, IsEmpty());
  }
  const auto path = step_path(folder_.path(), 100);
  EXPECT_EQ(digest_of(path), expected_digest(state, false));
  EXPECT_EQ(digest_of(path, DigestScope::model), expected_digest(state, true));
  EXPECT_THAT(verify_step(path, *inspect_step(path).manifest), IsEmpty());
}

TEST_P(RoundTrip, CrossesDigestBlocks) {
  const State state = large_state();
  ASSERT_TRUE(save_state(folder_.path(), state, 7, GetParam().cut, GetParam().ranks).durable);
  for (const NamedCut& other : {all_cuts()[0], all_cuts()[5], all_cuts()[7]}) {
    EXPECT_TRUE(load_state(folder_.path(), state, other.cut, other.ranks).equal) << other.name;
  }
  EXPECT_EQ(digest_of(step_path(folder_.path(), 7)), expected_digest(state, false));
}

TEST_P(RoundTrip, PythonReadsTheShards) {
  const State state = small_state();
  ASSERT_TRUE(save_state(folder_.path(), state, 1, GetParam().cut, GetParam().ranks).durable);
  for (const LogicalTensor& tensor : state) {
    const std::string file = (folder_.path() / ("expected-" + tensor.name)).string();
    File out = File::create_new(file);
    out.write(tensor.bytes.data(), static_cast<std::int64_t>(tensor.bytes.size()));
  }
  const std::string command = "/usr/bin/python3 " TRIREME_SOURCE_DIR
                              "/tests/io/checkpoint/read_safetensors.py " +
                              step_path(folder_.path(), 1).string() + " " + folder_.path().string();
  EXPECT_EQ(std::system(command.c_str()), 0);
}

INSTANTIATE_TEST_SUITE_P(Cuts, RoundTrip, testing::ValuesIn(all_cuts()),
                         [](const auto& test) { return test.param.name; });

TEST(Checkpoint, KeepsItsMeta) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(), 12).durable);
  const Manifest manifest = load_state(folder.path(), small_state()).resumed->manifest;
  const CheckpointMeta meta = meta_of(12);
  EXPECT_EQ(manifest.meta.step, 12);
  EXPECT_EQ(manifest.meta.samples, meta.samples);
  EXPECT_EQ(*manifest.meta.config, *meta.config);
  EXPECT_EQ(*manifest.meta.numerics, *meta.numerics);
  EXPECT_EQ(*manifest.meta.extra, *meta.extra);
  EXPECT_TRUE(manifest.read_back);
  EXPECT_EQ(manifest.generation, 1);
}

TEST(Checkpoint, DataStartsOnAPageAndTheFileHasNoTail) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), small_state(), 1).durable);
  const auto manifest = inspect_step(step_path(folder.path(), 1)).manifest;
  std::int64_t first = manifest->shards.at(0).bytes;
  std::int64_t bytes = 0;
  for (const StoredTensor& tensor : manifest->tensors) {
    first = std::min(first, tensor.blocks.at(0).offset);
    bytes += tensor.bytes();
  }
  EXPECT_EQ(first, 4096);
  EXPECT_EQ(manifest->shards.at(0).bytes, first + bytes);
}

TEST(Checkpoint, WithoutDirectIoAndReadBackTheSame) {
  TempFolder folder;
  DiskOptions options = options_for(folder.path());
  options.io = {.direct = false, .read_back = false, .threads = 1};
  ASSERT_TRUE(save_state(options, large_state(), 1, cut_flat, 2).durable);
  ResumeOptions reading;
  reading.io.direct = false;
  EXPECT_TRUE(load_state(folder.path(), large_state(), cut_rows, 3, reading).equal);
  EXPECT_FALSE(inspect_step(step_path(folder.path(), 1)).manifest->read_back);
}

TEST(Checkpoint, TheBlocksMayChangeOnceSaveReturns) {
  TempFolder folder;
  const State state = large_state();
  ThreadWorld(1).run([&](Communicator& comm) {
    Blocks blocks = cut_state(state, cut_nothing, 0, 1);
    DiskTarget target(comm, options_for(folder.path()));
    CheckpointWriter writer(comm, target);
    writer.save(meta_of(1), blocks.list);
    for (auto& buffer : blocks.buffers) {
      std::fill(buffer.begin(), buffer.end(), std::byte{0});
    }
    EXPECT_TRUE(writer.finish()->durable);
  });
  EXPECT_TRUE(load_state(folder.path(), state).equal);
}

TEST(Checkpoint, ASaveWaitsForTheOneBefore) {
  TempFolder folder;
  ThreadWorld(2).run([&](Communicator& comm) {
    const Blocks blocks = cut_state(small_state(), cut_flat, comm.rank(), 2);
    DiskTarget target(comm, options_for(folder.path()));
    CheckpointWriter writer(comm, target);
    EXPECT_FALSE(writer.save(meta_of(1), blocks.list).has_value());
    const auto first = writer.save(meta_of(2), blocks.list);
    ASSERT_TRUE(first.has_value());
    EXPECT_EQ(first->step, 1);
    EXPECT_TRUE(first->durable);
    EXPECT_EQ(writer.stats().waits, 1);
    EXPECT_EQ(writer.finish()->step, 2);
    EXPECT_EQ(writer.stats().durable, 2);
    EXPECT_FALSE(writer.finish().has_value());
    EXPECT_FALSE(writer.poll().has_value());
  });
  EXPECT_THAT(names_in(folder.path()),
              ElementsAre("GENERATION", "LATEST", "step-00000001", "step-00000002"));
}

TEST(Checkpoint, PollingAloneMakesItDurable) {
  TempFolder folder;
  ThreadWorld(3).run([&](Communicator& comm) {
    const Blocks blocks = cut_state(small_state(), cut_rows, comm.rank(), 3);
    DiskTarget target(comm, options_for(folder.path()));
    CheckpointWriter writer(comm, target);
    writer.save(meta_of(5), blocks.list);
    std::optional<SaveOutcome> outcome;
    while (!outcome) {
      outcome = writer.poll();
    }
    EXPECT_TRUE(outcome->durable);
    EXPECT_FALSE(writer.in_flight());
  });
  EXPECT_TRUE(load_state(folder.path(), small_state()).equal);
}

TEST(Checkpoint, ReadsOnlyTheBlocksItNeeds) {
  TempFolder folder;
  ASSERT_TRUE(save_state(folder.path(), large_state(), 1).durable);
  const State one = {large_state()[1]};  // 99 bytes
  const LoadedState loaded = load_state(folder.path(), one);
  EXPECT_TRUE(loaded.equal);
  EXPECT_EQ(loaded.resumed->load.wanted_bytes, 99);
  EXPECT_LE(loaded.resumed->load.read_bytes, 2 * kDigestBlockBytes);
}

}  // namespace
}  // namespace trireme
