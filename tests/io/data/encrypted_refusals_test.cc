// Attacks on an encrypted dataset by somebody who may write to its folder, but has no key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/block_digests.h"
#include "io/data/verify.h"
#include "src/base/digest.h"
#include "tests/io/data/encrypted_data.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;
using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;

class EncryptedRefusals : public EncryptedDataTest {
 protected:
  EncryptedRefusals() {
    pack_sealed("sealed");
    write_random_text("in2/a.txt", 1'400'000, 3);
    write_random_text("in2/b.txt", 1'300'000, 4);
    PackOptions made = sealed_options("in2", "other");
    made.shard_bytes = 2'800'000;
    pack(made, {});
    fs::copy(sealed_, folder_ / "intact", fs::copy_options::recursive);
  }

  void restore() const {
    fs::remove_all(sealed_);
    fs::copy(folder_ / "intact", sealed_, fs::copy_options::recursive);
  }
  // The dataset does not open or can't be read, for a reason with these words.
  void expect_refused(const std::string& words) const {
    EXPECT_THAT(fault_of(sealed_, ring_), HasSubstr(words));
    EXPECT_NE(fault_of(sealed_, ring_), "");
    restore();
  }
  // Changes bytes of a shard, and its digests in the manifest.
  void change_shard(std::size_t shard, const std::function<void(std::string&)>& change) const {
    ordered_json manifest = json_of(sealed_ / "manifest.json");
    ordered_json& entry = manifest["shards"][shard];
    const fs::path file = sealed_ / entry["path"].get<std::string>();
    std::string bytes = read_file(file);
    change(bytes);
    put(file, bytes);
    const FileDigests digests = digest_file(File::open_to_read(file));
    entry["bytes"] = digests.bytes;
    entry["xxh3"] = hex64(digests.whole);
    entry["blocks"] = join_hex64(digests.blocks);
    entry["tags"] = entry["tags"].get<std::string>().substr(0, 32 * digests.blocks.size());
    put(sealed_ / "manifest.json", seal_json(manifest));
  }
  // Returns the manifest in the folder with the key, as if keys.json vouched for it.
  DatasetManifest believed() const {
    const fs::path path = sealed_ / "manifest.json";
    DatasetManifest manifest = parse_dataset_manifest(read_file(path), path.string());
    set_key(manifest, Dataset::open(folder_ / "intact", ring_).manifest().key, sealed_);
    return manifest;
  }

  const fs::path sealed_ = folder_ / "sealed";
};

TEST_F(EncryptedRefusals, WrongOrMissingKey) {
  const KeyRing other({new_key(folder_, "another")});
  EXPECT_THAT(message_of<PolicyError>([&] { Dataset::open(sealed_, other); }),
              HasSubstr("is encrypted for file"));
  EXPECT_THAT(message_of<PolicyError>([&] { Dataset::open(sealed_, {}); }),
              HasSubstr("no key was given"));
  EXPECT_THAT(message_of<PolicyError>([&] { (void)all_tokens(Dataset::open(sealed_)); }),
              HasSubstr("no key was given"));
  EXPECT_EQ(fault_of(sealed_, KeyRing({other.keys().empty() ? "" : uri_})), "");
}

TEST_F(EncryptedRefusals, EveryBlockAndEveryPartOfIt) {
  const DatasetManifest manifest = Dataset::open(sealed_).manifest();
  for (std::size_t shard = 0; shard < manifest.shards.size(); ++shard) {
    const ShardEntry& entry = manifest.shards[shard];
    for (std::int64_t block = 0; block < std::ssize(entry.blocks); ++block) {
      const std::int64_t bytes = block_bytes(block, entry.bytes);
      for (const std::int64_t at : {std::int64_t{0}, bytes / 2, bytes - 1}) {
        const auto flip = [&](std::string& all) { all[block * kBlockBytes + at] ^= 1; };
        SCOPED_TRACE(fmt::format("shard {}, block {}, byte {}", shard, block, at));
        // Whoever changes the digests as well is found by the seal that keys.json vouches for.
        change_shard(shard, flip);
        EXPECT_THAT(fault_of(sealed_, ring_), HasSubstr("belongs to another manifest"));
        // XXH3 is no cryptographic digest: other bytes with the same digest can be made. Here the
        // changed manifest is believed, so that only the tag is left.
        const DatasetManifest changed = believed();
        EXPECT_THAT(verify_shards(sealed_, changed, 0, 1, {}).damage,
                    testing::ElementsAre(HasSubstr(fmt::format("block {} was not", block))));
        const Dataset dataset(sealed_, "", changed);
        EXPECT_THAT(message_of<DataError>([&] { (void)all_tokens(dataset); }),
                    HasSubstr(fmt::format("block {} was not encrypted with", block)));
        restore();
        flip_bit(sealed_ / entry.path, block * kBlockBytes + at);
        expect_refused(fmt::format("block {}, bytes [", block));
      }
    }
  }
}

TEST_F(EncryptedRefusals, BlocksThatMove) {
  const auto swap_blocks = [](std::string& bytes) {
    std::swap_ranges(bytes.begin(), bytes.begin() + kBlockBytes, bytes.begin() + kBlockBytes);
  };
  change_shard(0, swap_blocks);
  {
    DatasetManifest manifest = believed();
    std::swap(manifest.shards[0].tags[0], manifest.shards[0].tags[1]);  // with their tags
    EXPECT_THAT(verify_shards(sealed_, manifest, 0, 1, {}).damage,
                testing::ElementsAre(HasSubstr("block 0 was not"), HasSubstr("block 1 was not")));
  }
  expect_refused("belongs to another manifest");
  // The last block is cut off: the one before it was not written as the last one.
  change_shard(0, [](std::string& bytes) { bytes.resize(2 * kBlockBytes); });
  {
    const fs::path path = sealed_ / "manifest.json";
    EXPECT_THROW(parse_dataset_manifest(read_file(path), "it"), DataError) << "tokens are missing";
    DatasetManifest manifest = Dataset::open(folder_ / "intact", ring_).manifest();
    ShardEntry& entry = manifest.shards[0];
    entry.bytes = 2 * kBlockBytes;
    entry.data_bytes = entry.bytes - entry.data_offset;
    entry.n_tokens = entry.data_bytes / 2;
    entry.blocks.resize(2);
    entry.tags.resize(2);
    const Dataset dataset(sealed_, "", manifest);
    EXPECT_THAT(message_of<DataError>([&] { (void)all_tokens(dataset); }),
                HasSubstr("block 1 was not encrypted with"));
  }
  restore();
  fs::resize_file(sealed_ / "shards/00000.h5.sealed", 1'000'000);
  expect_refused("the shard is truncated");
  fs::remove(sealed_ / "shards/00001.h5.sealed");
  expect_refused("the shard is missing");
}

TEST_F(EncryptedRefusals, ShardsThatMove) {
  const fs::path first = sealed_ / "shards/00000.h5.sealed";
  const fs::path second = sealed_ / "shards/00001.h5.sealed";
  fs::rename(first, folder_ / "x");
  fs::rename(second, first);
  fs::rename(folder_ / "x", second);
  EXPECT_NE(fault_of(sealed_, ring_), "");
  // Their entries are swapped, too, with or without the salts.
  for (const bool with_salt : {true, false}) {
    DatasetManifest manifest = Dataset::open(folder_ / "intact", ring_).manifest();
    std::swap(manifest.shards[0], manifest.shards[1]);
    std::swap(manifest.shards[0].path, manifest.shards[1].path);
    if (!with_salt) {
      std::swap(manifest.shards[0].salt, manifest.shards[1].salt);
    }
    EXPECT_EQ(verify_shards(sealed_, manifest, 0, 1, {}).damage.size(),
              manifest.shards[0].blocks.size() + manifest.shards[1].blocks.size());
    EXPECT_THROW(set_key(manifest, manifest.key, sealed_), DataError);
  }
  restore();
  // A shard of another dataset of the same site.
  const Dataset other = Dataset::open(folder_ / "other", ring_);
  fs::copy_file(folder_ / "other/shards/00000.h5.sealed", first,
                fs::copy_options::overwrite_existing);
  EXPECT_NE(fault_of(sealed_, ring_), "");
  DatasetManifest manifest = Dataset::open(folder_ / "intact", ring_).manifest();
  manifest.shards[0] = other.manifest().shards[0];
  EXPECT_THAT(verify_shards(sealed_, manifest, 0, 1, {}).damage,
              testing::Contains(HasSubstr("block 0 was not encrypted with")));
  restore();
  for (const char* const file : {"manifest.json", "keys.json"}) {
    fs::copy_file(folder_ / "other" / file, sealed_ / file, fs::copy_options::overwrite_existing);
    expect_refused("belongs to another manifest");
  }
}

TEST_F(EncryptedRefusals, ChangedManifests) {
  using Change = std::function<void(ordered_json&)>;
  const auto flip_digit = [](ordered_json& text) {
    std::string changed = text;
    changed[5] = changed[5] == '0' ? '1' : '0';
    text = changed;
  };
  const std::vector<Change> changes = {
      [](ordered_json& m) { m["source"] = "another"; },
      [](ordered_json& m) { m["vocab"] = 256; },
      [](ordered_json& m) { m["tokenizer"]["name"] = "another"; },
      [](ordered_json& m) { m["fingerprint"] = "another"; },
      [](ordered_json& m) { m["n_docs"] = 1; },
      [](ordered_json& m) { m["version"] = 1; },
      [](ordered_json& m) { m["encryption"]["data_key"] = std::string(32, '0'); },
      [](ordered_json& m) { m["encryption"]["data_key"] = "0"; },
      [](ordered_json& m) { m["encryption"]["cipher"] = "AES-128-GCM"; },
      [](ordered_json& m) { m["encryption"].erase("cipher"); },
      [](ordered_json& m) { m["encryption"] = "none"; },
      [](ordered_json& m) { m.erase("encryption"); },
      [](ordered_json& m) { m["shards"][0].erase("tags"); },
      [](ordered_json& m) { m["shards"][0].erase("salt"); },
      [](ordered_json& m) { m["shards"][0].erase("plain_xxh3"); },
      [&](ordered_json& m) { flip_digit(m["shards"][0]["tags"]); },
      [&](ordered_json& m) { flip_digit(m["shards"][0]["salt"]); },
      [&](ordered_json& m) { flip_digit(m["shards"][0]["plain_xxh3"]); },
      [](ordered_json& m) { m["shards"][0]["tags"] = m["shards"][1]["tags"]; },
      [](ordered_json& m) { m["shards"][0]["salt"] = m["shards"][1]["salt"]; },
      [](ordered_json& m) { m["shards"][0]["plain_xxh3"] = m["shards"][1]["plain_xxh3"]; },
      [](ordered_json& m) { m["shards"][0]["tags"] = ""; },
      [](ordered_json& m) { m["shards"][0]["tags"] = "00"; },
      [](ordered_json& m) { m["shards"][0]["salt"] = "xyz"; },
      [](ordered_json& m) { m["shards"][0]["salt"] = std::string(31, 'a'); },
      [](ordered_json& m) { m["shards"][0]["plain_xxh3"] = std::string(46, 'a'); },
      [](ordered_json& m) { m["shards"][0]["data_offset"] = 16384; },
      [](ordered_json& m) { std::swap(m["shards"][0], m["shards"][1]); },
      [](ordered_json& m) { m["shards"].erase(1); }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    ordered_json manifest = json_of(sealed_ / "manifest.json");
    changes[i](manifest);
    put(sealed_ / "manifest.json", seal_json(manifest));
    expect_refused("manifest");
  }
}

// The whole folder is replaced by a plain dataset: this is found by whoever expects encryption
// (open_dataset_test.cc); without a key it can't be told from one.
TEST_F(EncryptedRefusals, EncryptionStrippedFromTheManifest) {
  ordered_json manifest = json_of(sealed_ / "manifest.json");
  manifest["version"] = 1;
  manifest.erase("encryption");
  put(sealed_ / "manifest.json", seal_json(manifest));
  EXPECT_THAT(fault_of(sealed_, ring_),
              HasSubstr("the dataset is not encrypted, but shards/00000.h5.sealed is encrypted"));
  for (ordered_json& shard : manifest["shards"]) {
    shard.erase("tags");
  }
  put(sealed_ / "manifest.json", seal_json(manifest));
  EXPECT_THAT(fault_of(sealed_, ring_), HasSubstr("'digest'"));
}

TEST_F(EncryptedRefusals, ChangedKeysFiles) {
  const fs::path file = sealed_ / "keys.json";
  fs::remove(file);
  expect_refused("keys.json is missing");
  const std::string text = read_file(file);
  put(file, text.substr(0, text.size() / 2));
  expect_refused("keys.json");
  using Change = std::function<void(ordered_json&)>;
  const std::vector<Change> changes = {
      [](ordered_json& k) { k["mac"] = std::string(64, '0'); },
      [](ordered_json& k) { k["contents"] = "sha256:0"; },
      [](ordered_json& k) { k["contents"] = kPackContents; },
      [](ordered_json& k) { k["data_key"] = std::string(32, '0'); },
      [](ordered_json& k) { k["format"] = "another"; },
      [](ordered_json& k) { k["version"] = 2; },
      [](ordered_json& k) { k["recipients"] = ordered_json::array(); },
      [](ordered_json& k) { k["recipients"][0]["wrapped"] = "AAAA"; },
      [](ordered_json& k) { k["recipients"][0]["name"] = "another"; },
      [](ordered_json& k) { k["recipients"].push_back(k["recipients"][0]); }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    ordered_json keys = json_of(file);
    changes[i](keys);
    put(file, seal_json(keys));
    expect_refused("keys.json");
  }
}

// The wrapped key of a pack that was interrupted, which has another seal than that of a manifest.
TEST_F(EncryptedRefusals, KeysOfAnUnfinishedPack) {
  const Dataset dataset = Dataset::open(sealed_, ring_);
  put(sealed_ / "keys.json", to_text(ring_.wrap(*dataset.manifest().key, kPackContents)));
  expect_refused("belongs to another manifest");
}

}  // namespace
}  // namespace trireme
