#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/verify.h"
#include "src/base/digest.h"
#include "src/base/sealed_json.h"
#include "tests/io/checkpoint/encrypted_state.h"
#include "tests/support/message_of.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

class EncryptedFolder : public testing::Test {
 protected:
  fs::path checkpoints() const { return folder_.path() / "checkpoints"; }
  fs::path step(std::int64_t number) const { return step_path(checkpoints(), number); }
  // Returns the manifest of a step with its key.
  Manifest opened(std::int64_t number) const {
    Manifest manifest = *inspect_step(step(number)).manifest;
    unlock(manifest, step(number), {{key_}, false});
    return manifest;
  }

  TempFolder folder_;
  std::string key_ = new_key(folder_.path(), "site");
};

class Encryption : public EncryptedFolder, public testing::WithParamInterface<NamedCut> {};

TEST_P(Encryption, LoadsUnderEveryOtherCutWithThePlainDigest) {
  const State state = large_state();
  const SaveOutcome outcome =
      save_encrypted(checkpoints(), {key_}, state, 7, GetParam().cut, GetParam().ranks);
  ASSERT_TRUE(outcome.durable) << outcome.message;
  EXPECT_EQ(outcome.message, "");
  for (const NamedCut& other : {all_cuts()[0], all_cuts()[3], all_cuts()[5], all_cuts()[8]}) {
    EXPECT_TRUE(load_encrypted(checkpoints(), {{key_}}, state, other.cut, other.ranks).equal)
        << other.name;
  }
  const Manifest manifest = opened(7);
  EXPECT_THAT(verify_step(step(7), manifest), IsEmpty());
  EXPECT_THAT(verify_step(step(7), *inspect_step(step(7)).manifest), IsEmpty()) << "without a key";
  TempFolder plain;
  ASSERT_TRUE(save_state(plain.path(), state, 7, GetParam().cut, GetParam().ranks).durable);
  EXPECT_EQ(logical_digest(step(7), manifest, DigestScope::all),
            digest_of(step_path(plain.path(), 7)));
  for (const LogicalTensor& tensor : state) {
    EXPECT_TRUE(contains_bytes(plain.path(), canary_of(tensor))) << tensor.name;
    EXPECT_FALSE(contains_bytes(checkpoints(), canary_of(tensor))) << tensor.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Cuts, Encryption,
                         testing::Values(all_cuts()[0], all_cuts()[4], all_cuts()[7]),
                         [](const auto& test) { return test.param.name; });

class EncryptionRefusals : public EncryptedFolder {
 protected:
  EncryptionRefusals() {
    EXPECT_TRUE(save_encrypted(checkpoints(), {key_}, state_, 1, cut_rows, 2).durable);
    EXPECT_TRUE(save_encrypted(checkpoints(), {key_}, other_state_, 2, cut_rows, 2).durable);
    fs::copy(checkpoints(), folder_.path() / "intact", fs::copy_options::recursive);
  }

  void restore() const {
    fs::remove_all(checkpoints());
    fs::copy(folder_.path() / "intact", checkpoints(), fs::copy_options::recursive);
  }
  json manifest_of(std::int64_t number) const {
    return json::parse(read_file(step(number) / "manifest.json"));
  }
  // Writes a manifest with an intact seal, as anybody can.
  void write_manifest(std::int64_t number, const json& manifest) const {
    nlohmann::ordered_json sorted;
    for (const auto& [name, value] : manifest.items()) {
      if (name != "seal") {
        sorted[name] = value;
      }
    }
    write(step(number) / "manifest.json", seal_json(sorted));
  }
  static void write(const fs::path& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  // Changes bytes of a shard, and its digests in the manifest, as somebody without the key would.
  void change_shard(std::int64_t number, std::size_t shard,
                    const std::function<void(std::string&)>& change) const {
    json manifest = manifest_of(number);
    json& entry = manifest["shards"][shard];
    const fs::path file = step(number) / entry["file"].get<std::string>();
    std::string bytes = read_file(file);
    change(bytes);
    write(file, bytes);
    entry["bytes"] = bytes.size();
    entry["xxh3"] = hex64(xxh3(bytes.data(), std::ssize(bytes)));
    std::vector<std::uint64_t> digests;
    for (std::int64_t at = 0; at < std::ssize(bytes); at += kBlock) {
      digests.push_back(
          xxh3(bytes.data() + at, std::min<std::int64_t>(kBlock, std::ssize(bytes) - at)));
    }
    entry["blocks"] = join_hex64(digests);
    const std::string tags = entry["tags"];
    entry["tags"] = tags.substr(0, 32 * digests.size());
    write_manifest(number, manifest);
  }
  // The newest step is refused; what the ranks load is the step before it.
  void expect_skipped(const std::string& reason) const {
    const LoadedState loaded = load_encrypted(checkpoints(), {{key_}}, state_, cut_rows, 3);
    ASSERT_TRUE(loaded.resumed.has_value());
    EXPECT_EQ(loaded.resumed->manifest.meta.step, 1);
    EXPECT_TRUE(loaded.equal);
    EXPECT_THAT(loaded.resumed->skipped, testing::Contains(HasSubstr(reason)));
    restore();
  }
  std::string refusal(const KeyOptions& keys) const {
    return message_of<PolicyError>(
        [&] { (void)load_encrypted(checkpoints(), keys, other_state_, cut_rows, 2); });
  }

  static constexpr std::int64_t kBlock = kDigestBlockBytes;
  State state_ = large_state(1);
  State other_state_ = large_state(5);
};

TEST_F(EncryptionRefusals, WrongOrMissingKey) {
  const std::string other = new_key(folder_.path(), "other");
  EXPECT_THAT(refusal({{other}}), HasSubstr("is encrypted for file "));
  EXPECT_THAT(refusal({}), HasSubstr("no key was given"));
  EXPECT_THROW((void)load_state(checkpoints(), other_state_, cut_rows, 2), PolicyError);
  Manifest manifest = *inspect_step(step(2)).manifest;
  EXPECT_THROW(unlock(manifest, step(2), {{other}, false}), PolicyError);
  EXPECT_TRUE(load_encrypted(checkpoints(), {{other, key_}}, other_state_, cut_rows, 2).equal);
}

TEST_F(EncryptionRefusals, PlainInsteadOfEncrypted) {
  ASSERT_TRUE(save_state(checkpoints(), other_state_, 3, cut_rows, 2).durable);
  EXPECT_THAT(refusal({{key_}}), HasSubstr("is not encrypted, but encryption.keys asks"));
  EXPECT_TRUE(load_encrypted(checkpoints(), {{key_}, true}, other_state_, cut_rows, 2).equal);
}

TEST_F(EncryptionRefusals, EncryptionStrippedFromTheManifest) {
  json manifest = manifest_of(2);
  manifest.erase("encryption");
  write_manifest(2, manifest);
  expect_skipped("is not encrypted, but shard-00000.safetensors is encrypted");
  manifest = manifest_of(2);
  manifest.erase("encryption");
  manifest["version"] = 1;
  for (json& shard : manifest["shards"]) {
    shard.erase("tags");
  }
  write_manifest(2, manifest);
  EXPECT_THAT(refusal({{key_}}), HasSubstr("is not encrypted"));
  restore();
  manifest = manifest_of(2);
  manifest["shards"][0].erase("tags");
  write_manifest(2, manifest);
  expect_skipped("is encrypted, but shard-00000.safetensors is not");
}

// Whoever has no key can make digests and seal, but no tag and no MAC.
TEST_F(EncryptionRefusals, ChangedShards) {
  const auto flipped = [](std::size_t at) {
    return [at](std::string& bytes) { bytes[at] = static_cast<char>(bytes[at] ^ 1); };
  };
  for (const std::size_t at :
       {std::size_t{0}, std::size_t{9}, std::size_t{5000}, static_cast<std::size_t>(kBlock) + 7}) {
    change_shard(2, 0, flipped(at));
    expect_skipped("belongs to another manifest");
  }
  change_shard(2, 0, [](std::string& bytes) { bytes.resize(bytes.size() - 1); });
  expect_skipped("");
  change_shard(2, 0, [](std::string& bytes) { bytes.resize(kBlock); });
  expect_skipped("");
  change_shard(2, 0, [](std::string& bytes) {
    std::swap_ranges(bytes.begin(), bytes.begin() + kBlock, bytes.begin() + kBlock);
  });
  expect_skipped("belongs to another manifest");
}

// The digests of the manifest are no cryptographic ones: bytes with the same digest can be made.
// Here the digest is that of the changed bytes, and the manifest is believed.
TEST_F(EncryptionRefusals, BlocksThatDoNotOpen) {
  change_shard(2, 1, [](std::string& bytes) { bytes[kBlock + 3] ^= 4; });
  Manifest manifest = parse_manifest(read_file(step(2) / "manifest.json"), "it");
  restore();
  const Manifest intact = opened(2);
  manifest.key = intact.key;
  change_shard(2, 1, [](std::string& bytes) { bytes[kBlock + 3] ^= 4; });
  EXPECT_THAT(verify_step(step(2), manifest),
              testing::ElementsAre(HasSubstr("shard-00001.safetensors: block 1 was not written")));
  EXPECT_THROW((void)logical_digest(step(2), manifest, DigestScope::all), DataError);
}

TEST_F(EncryptionRefusals, FilesOfOtherSteps) {
  for (const char* const file : {"shard-00000.safetensors", "keys.json", "manifest.json"}) {
    fs::copy_file(step(1) / file, step(2) / file, fs::copy_options::overwrite_existing);
    expect_skipped("");
  }
  fs::copy_file(step(1) / "keys.json", step(2) / "keys.json", fs::copy_options::overwrite_existing);
  fs::copy_file(step(1) / "shard-00000.safetensors", step(2) / "shard-00000.safetensors",
                fs::copy_options::overwrite_existing);
  expect_skipped("");
  // An older step under a newer name.
  fs::remove_all(step(2));
  fs::copy(step(1), step(2), fs::copy_options::recursive);
  expect_skipped("");
  // The two shards of one step, swapped, with their entries in the manifest.
  json manifest = manifest_of(2);
  std::swap(manifest["shards"][0], manifest["shards"][1]);
  std::swap(manifest["shards"][0]["file"], manifest["shards"][1]["file"]);
  write_manifest(2, manifest);
  fs::rename(step(2) / "shard-00000.safetensors", step(2) / "x");
  fs::rename(step(2) / "shard-00001.safetensors", step(2) / "shard-00000.safetensors");
  fs::rename(step(2) / "x", step(2) / "shard-00001.safetensors");
  expect_skipped("");
}

TEST_F(EncryptionRefusals, ChangedManifests) {
  using Change = std::function<void(json&)>;
  const std::vector<Change> changes = {
      [](json& m) {
        m["step"] = 2;
        m["samples"] = 1;
      },
      [](json& m) { m["extra"]["note"] = "another"; },
      [](json& m) { m["config"]["name"] = "another"; },
      [](json& m) { m["numerics"] = json::object(); },
      [](json& m) { m["created"] = "2020-01-01T00:00:00Z"; },
      [](json& m) { m["generation"] = 1; },
      [](json& m) { m["read_back"] = false; },
      [](json& m) { m["encryption"]["data_key"] = std::string(32, '0'); },
      [](json& m) { m["encryption"]["cipher"] = "AES-128-GCM"; },
      [](json& m) { m["encryption"].erase("cipher"); },
      [](json& m) { m["encryption"] = "none"; },
      [](json& m) { m["shards"][0]["tags"] = m["shards"][1]["tags"]; },
      [](json& m) { m["shards"][0]["tags"] = "00"; },
      [](json& m) { m["shards"][0]["tags"] = ""; },
      [](json& m) {
        std::string tags = m["shards"][0]["tags"];
        tags[5] = 'g';
        m["shards"][0]["tags"] = tags;
      },
      [](json& m) {
        std::string tags = m["shards"][0]["tags"];
        tags[5] = tags[5] == '0' ? '1' : '0';
        m["shards"][0]["tags"] = tags;
      },
      [](json& m) { std::swap(m["tensors"][0]["blocks"], m["tensors"][3]["blocks"]); }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    json manifest = manifest_of(2);
    changes[i](manifest);
    write_manifest(2, manifest);
    expect_skipped("");
  }
}

TEST_F(EncryptionRefusals, ChangedKeysFiles) {
  fs::remove(step(2) / "keys.json");
  expect_skipped("keys.json is missing");
  const std::string text = read_file(step(2) / "keys.json");
  write(step(2) / "keys.json", text.substr(0, text.size() / 2));
  expect_skipped("keys.json");
  using Change = std::function<void(json&)>;
  const std::vector<Change> changes = {
      [](json& k) { k["mac"] = std::string(64, '0'); },
      [](json& k) { k["mac"] = "0"; },
      [](json& k) { k["contents"] = "sha256:0"; },
      [](json& k) { k["data_key"] = std::string(32, '0'); },
      [](json& k) { k["data_key"] = 5; },
      [](json& k) { k["format"] = "another"; },
      [](json& k) { k["version"] = 2; },
      [](json& k) { k["recipients"][0]["wrapped"] = "AAAA"; },
      [](json& k) { k["recipients"][0]["wrapped"] = "!"; },
      [](json& k) { k["recipients"][0]["key"] = "a b"; },
      [](json& k) { k["recipients"][0].erase("parameters"); },
      [](json& k) { k["recipients"].push_back(k["recipients"][0]); }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    json keys = json::parse(read_file(step(2) / "keys.json"));
    keys.erase("seal");
    changes[i](keys);
    write(step(2) / "keys.json", seal_json(nlohmann::ordered_json(keys)));
    expect_skipped("keys.json");
  }
}

TEST(StepKeys, NoTwoSavesHaveAKeyInCommon) {
  TempFolder folder;
  const std::string uri = new_key(folder.path(), "site");
  std::vector<std::string> ids;
  for (int run = 0; run < 2; ++run) {
    ThreadWorld(3).run([&](Communicator& comm) {
      StepKeys keys(comm, {{uri}, false});
      keys.prepare_to_save();
      for (int save = 0; save < 3; ++save) {
        const auto key = keys.next();
        const auto all = all_gather_text(comm, key->key.id());
        EXPECT_EQ(all, std::vector<std::string>(3, all[0]));
        if (comm.rank() == 0) {
          ids.push_back(key->key.id());
        }
      }
    });
  }
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(std::adjacent_find(ids.begin(), ids.end()), ids.end());
  EXPECT_EQ(ids.size(), 6U);
}

}  // namespace
}  // namespace trireme
