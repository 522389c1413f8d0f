#include <algorithm>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "io/checkpoint/verify.h"
#include "src/base/file.h"
#include "src/base/sealed_json.h"
#include "tests/io/checkpoint/sample_state.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

void flip(const fs::path& path, std::int64_t at, int mask) {
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  unsigned char byte = 0;
  ASSERT_EQ(::pread(fd, &byte, 1, at), 1);
  byte = static_cast<unsigned char>(byte ^ mask);
  ASSERT_EQ(::pwrite(fd, &byte, 1, at), 1);
  ::close(fd);
}

void write_text(const fs::path& path, const std::string& text) {
  fs::remove(path);
  File file = File::create_new(path);
  file.write(text.data(), static_cast<std::int64_t>(text.size()));
}

// Saves two checkpoints with different values; the tests damage the newer one.
class Damage : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(save_state(folder_.path(), old_, 1, cut_flat, 2).durable);
    ASSERT_TRUE(save_state(folder_.path(), new_, 2, cut_flat, 2).durable);
  }

  // Expects that the newer one is not used, its file is named, and the older one is loaded instead.
  void expect_fall_back(const std::string& named) {
    const LoadedState loaded = load_state(folder_.path(), old_, cut_rows, 2);
    ASSERT_TRUE(loaded.resumed.has_value());
    EXPECT_EQ(loaded.resumed->manifest.meta.step, 1);
    EXPECT_TRUE(loaded.equal);
    EXPECT_THAT(loaded.resumed->skipped, ElementsAre(HasSubstr(named)));
  }

  std::vector<std::string> faults() const {
    const StepFolder step = inspect_step(newer());
    return step.manifest ? verify_step(step.path, *step.manifest)
                         : std::vector<std::string>{step.problem};
  }

  fs::path newer() const { return step_path(folder_.path(), 2); }
  fs::path shard(int number) const {
    return newer() / ("shard-0000" + std::to_string(number) + ".safetensors");
  }

  TempFolder folder_;
  State old_ = small_state(1);
  State new_ = small_state(50);
};

TEST_F(Damage, AFlippedByteOfAShardIsFoundNamedAndNotUsed) {
  for (const fs::path& path : {shard(0), shard(1)}) {
    const auto bytes = static_cast<std::int64_t>(fs::file_size(path));
    for (std::int64_t at = 0; at < bytes; at += 97) {
      const int mask = 1 << (at % 8);
      flip(path, at, mask);
      expect_fall_back(path.string() + ": block 0");
      ASSERT_THAT(faults(), Contains(HasSubstr(path.string() + ": block 0"))) << at;
      flip(path, at, mask);
    }
  }
  EXPECT_TRUE(load_state(folder_.path(), new_).equal);
}

TEST_F(Damage, AFlippedByteOfTheManifestIsFoundNamedAndNotUsed) {
  const fs::path path = newer() / kManifestName;
  const auto bytes = static_cast<std::int64_t>(fs::file_size(path));
  for (std::int64_t at = 0; at < bytes; at += 97) {
    flip(path, at, 1 << (at % 8));
    expect_fall_back(path.string());
    flip(path, at, 1 << (at % 8));
  }
  const std::string text = read_file(path);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string bad = text;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    EXPECT_THROW(parse_manifest(bad, "it"), DataError) << at;
  }
  EXPECT_NO_THROW(parse_manifest(text, "it"));
}

TEST_F(Damage, TheDamagedBlockIsNamed) {
  ASSERT_TRUE(save_state(folder_.path(), large_state(), 3).durable);
  const fs::path path = step_path(folder_.path(), 3) / "shard-00000.safetensors";
  flip(path, 3 * kDigestBlockBytes + 77, 0x10);
  flip(path, 6 * kDigestBlockBytes, 0x01);
  const StepFolder step = inspect_step(path.parent_path());
  EXPECT_THAT(verify_step(step.path, *step.manifest),
              ElementsAre(HasSubstr("block 3 (bytes 3145728 to 4194303)"), HasSubstr("block 6 ")));
  EXPECT_THROW(logical_digest(step.path, *step.manifest, DigestScope::all), DataError);
}

TEST_F(Damage, ZeroesInPlaceOfAPage) {
  const int fd = ::open(shard(1).c_str(), O_WRONLY | O_CLOEXEC);
  const std::string zeros(900, '\0');
  ASSERT_EQ(::pwrite(fd, zeros.data(), zeros.size(), 4100), 900);
  ::close(fd);
  expect_fall_back(shard(1).string() + ": block 0");
}

TEST_F(Damage, TruncatedFiles) {
  for (const fs::path& path : {shard(0), shard(1), newer() / kManifestName}) {
    const std::string whole = read_file(path);
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{5}, whole.size() / 2, whole.size() - 1}) {
      write_text(path, whole.substr(0, bytes));
      expect_fall_back(path.string());
    }
    write_text(path, whole + " ");
    expect_fall_back(path.string());
    write_text(path, whole);
  }
  EXPECT_TRUE(load_state(folder_.path(), new_).equal);
}

TEST_F(Damage, AMissingShard) {
  fs::remove(shard(1));
  expect_fall_back("shard-00001.safetensors");
}

TEST_F(Damage, AMissingManifest) {
  fs::remove(newer() / kManifestName);
  expect_fall_back("manifest.json");
}

TEST_F(Damage, AShardTooMany) {
  fs::copy_file(shard(1), newer() / "shard-00002.safetensors");
  expect_fall_back("shard-00002.safetensors is not in the manifest");
}

TEST_F(Damage, ShardsSwappedBetweenSteps) {
  const fs::path other = step_path(folder_.path(), 1) / "shard-00001.safetensors";
  fs::copy_file(other, shard(1), fs::copy_options::overwrite_existing);
  expect_fall_back("shard-00001.safetensors: block 0");
  EXPECT_THAT(faults(), Contains(HasSubstr("shard-00001.safetensors: block 0")));
}

TEST_F(Damage, ShardsSwappedWithinAStep) {
  fs::rename(shard(0), newer() / "aside");
  fs::rename(shard(1), shard(0));
  fs::rename(newer() / "aside", shard(1));
  expect_fall_back("shard-0000");
}

TEST_F(Damage, AFolderCopiedUnderAnotherStep) {
  fs::copy(newer(), step_path(folder_.path(), 9));
  fs::copy(newer(), folder_.path() / "step-00000002-copy");
  fs::copy(newer(), folder_.path() / "step-3");
  const LoadedState loaded = load_state(folder_.path(), new_);
  EXPECT_EQ(loaded.resumed->manifest.meta.step, 2);
  EXPECT_THAT(loaded.resumed->skipped,
              testing::UnorderedElementsAre(
                  AllOf(HasSubstr("step-00000009"), HasSubstr("belongs to step 2")),
                  HasSubstr("step-00000002-copy is not a valid name for a step folder"),
                  HasSubstr("step-3 is not a valid name for a step folder")));
}

TEST_F(Damage, AManifestOfANewerVersion) {
  const fs::path path = newer() / kManifestName;
  std::string text = read_file(path);
  std::string body = text.substr(0, text.rfind(",\n \"seal\""));
  body.replace(body.find("\"version\": 1"), 12, "\"version\": 4");
  write_text(path, seal_body(body));
  expect_fall_back("version 4 is newer than 3");
}

// Only a program can do this: the digests and the seal are right.
TEST_F(Damage, AManifestThatExchangesTwoBlocks) {
  const fs::path path = newer() / kManifestName;
  Manifest manifest = parse_manifest(read_file(path), "it");
  const auto tensor = [&](const std::string& name) {
    return std::find_if(manifest.tensors.begin(), manifest.tensors.end(),
                        [&](const StoredTensor& t) { return t.name == name; });
  };
  std::swap(tensor("wte.weight")->blocks, tensor("optimizer.m.wte.weight")->blocks);
  write_text(path, to_text(manifest));
  expect_fall_back("the header and the manifest disagree about ");
  EXPECT_THAT(faults(), Contains(HasSubstr("the header and the manifest disagree about ")));
  EXPECT_THROW(logical_digest(newer(), manifest, DigestScope::all), DataError);
}

TEST_F(Damage, AllBadIsAnErrorThatNamesAll) {
  flip(step_path(folder_.path(), 1) / "shard-00000.safetensors", 4100, 1);
  fs::remove(newer() / kManifestName);
  try {
    load_state(folder_.path(), new_, cut_rows, 3);
    FAIL() << "a run would have started from the beginning";
  } catch (const DataError& e) {
    EXPECT_EQ(e.exit_code(), ExitCode::bad_data);
    EXPECT_THAT(e.what(), AllOf(HasSubstr("step-00000001/shard-00000.safetensors: block 0"),
                                HasSubstr("step-00000002/manifest.json")));
  }
}

TEST_F(Damage, AWrongHintIsIgnored) {
  write_text(folder_.path() / kLatestName, "step-00000001\n");
  EXPECT_TRUE(load_state(folder_.path(), new_).equal);
  write_text(folder_.path() / kLatestName, std::string(5000, '\xff'));
  EXPECT_TRUE(load_state(folder_.path(), new_).equal);
}

// If only one rank meets the damage, all ranks fall back together.
TEST_F(Damage, FoundByOneRankItCountsForAll) {
  flip(shard(1), static_cast<std::int64_t>(fs::file_size(shard(1))) - 1, 4);
  ThreadWorld(3).run([&](Communicator& comm) {
    // Rank 1 alone wants bytes of the second shard.
    const Cut cut = [&](const Shape& shape, int part, int) {
      return cut_flat(shape, part == 1 ? 1 : 0, 2);
    };
    const Blocks blocks = cut_state(old_, cut, comm.rank(), 3);
    const auto resumed = resume(comm, folder_.path(), blocks.list);
    ASSERT_TRUE(resumed.has_value());
    EXPECT_EQ(resumed->manifest.meta.step, 1);
    EXPECT_THAT(resumed->skipped, ElementsAre(AllOf(HasSubstr("rank 1"), HasSubstr("block 0"))));
  });
}

}  // namespace
}  // namespace trireme
