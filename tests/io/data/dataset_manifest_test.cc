#include "io/data/dataset_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/sealed_json.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;
using testing::HasSubstr;

DatasetManifest sample_manifest() {
  DatasetManifest manifest;
  manifest.vocab = 257;
  manifest.tokenizer = "bytes";
  manifest.tokenizer_digest = "abc";
  manifest.source = "a \"source\" with\nlines";
  manifest.fingerprint = "f";
  for (int i = 0; i < 2; ++i) {
    ShardEntry shard;
    shard.path = fmt::format("shards/{:05}.h5", i);
    shard.bytes = (1 << 20) + 4096;
    shard.n_tokens = 524288;
    shard.n_docs = 3;
    shard.data_offset = 4096;
    shard.data_bytes = 1 << 20;
    shard.docs_offset = 2048;
    shard.docs_bytes = 32;
    shard.xxh3 = 77;
    shard.blocks = {1, 0xFFFFFFFFFFFFFFFF};
    manifest.shards.push_back(shard);
  }
  return manifest;
}

// Returns the sample manifest with one change and a new seal, as an attacker or a faulty program
// could write it.
std::string altered(const std::function<void(ordered_json&)>& change) {
  std::string text = manifest_text(sample_manifest());
  ordered_json object = ordered_json::parse(text);
  object.erase("seal");
  change(object);
  return seal_json(object);
}

std::string refusal(const std::string& text) {
  return message_of<DataError>([&] { parse_dataset_manifest(text, "m.json"); });
}

TEST(DatasetManifestTest, ComesBackAsItWas) {
  const DatasetManifest manifest = sample_manifest();
  const std::string text = manifest_text(manifest);
  const DatasetManifest again = parse_dataset_manifest(text, "m.json");
  EXPECT_EQ(manifest_text(again), text);
  EXPECT_EQ(again.digest(), manifest.digest());
  EXPECT_EQ(again.shards[1].blocks[1], 0xFFFFFFFFFFFFFFFF);
  EXPECT_EQ(again.source, manifest.source);
  EXPECT_EQ(again.n_tokens(), 2 * 524288);
}

TEST(DatasetManifestTest, KeepsItsLabel) {
  DatasetManifest manifest = sample_manifest();
  EXPECT_EQ(manifest.version(), 1);
  manifest.label = parse_label({"classification=secret", "jurisdiction=AE"});
  const std::string text = manifest_text(manifest);
  const DatasetManifest again = parse_dataset_manifest(text, "m.json");
  EXPECT_EQ(again.label, manifest.label);
  EXPECT_EQ(again.version(), kLabelledDatasetVersion);
  EXPECT_EQ(again.digest(), sample_manifest().digest());
}

TEST(DatasetManifestTest, RefusesALabelInAnOlderVersion) {
  EXPECT_THAT(refusal(altered([](ordered_json& o) {
                o["label"] = {{"classification", "a"}};
              })),
              HasSubstr("has version 3: the manifest was edited"));
  EXPECT_THAT(refusal(altered([](ordered_json& o) { o["version"] = 3; })),
              HasSubstr("without a label"));
  EXPECT_THAT(refusal(altered([](ordered_json& o) {
                o["version"] = 3;
                o["label"] = {{"classification", "a"}, {"readers", "b"}};
              })),
              HasSubstr("unknown field 'readers'"));
}

TEST(DatasetManifestTest, EveryFlippedBitIsFound) {
  const std::string text = manifest_text(sample_manifest());
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (const char mask : {'\x01', '\x20', '\x04'}) {
      std::string damaged = text;
      damaged[at] = static_cast<char>(damaged[at] ^ mask);
      EXPECT_THROW(parse_dataset_manifest(damaged, "m.json"), DataError) << at;
    }
  }
}

TEST(DatasetManifestTest, EveryTruncationIsFound) {
  const std::string text = manifest_text(sample_manifest());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_THROW(parse_dataset_manifest(text.substr(0, length), "m.json"), DataError) << length;
  }
  EXPECT_THROW(parse_dataset_manifest(text + "\n", "m.json"), DataError);
}

TEST(DatasetManifestTest, ANewerVersionIsRefusedByNumber) {
  const std::string sealed = altered([](ordered_json& o) { o["version"] = 7; });
  EXPECT_THAT(refusal(sealed), HasSubstr("version 7 is newer than 4"));
  // The version is checked before the seal, because a newer program may seal in another way.
  EXPECT_THAT(refusal(R"({"format": "trireme-dataset", "version": 5, "new": true})"),
              HasSubstr("version 5 is newer than 4"));
}

TEST(DatasetManifestTest, UnknownFieldsAreTolerated) {
  const std::string text = altered([](ordered_json& o) {
    o["later"] = {{"x", 1}};
    o["shards"][0]["later"] = "y";
  });
  EXPECT_EQ(parse_dataset_manifest(text, "m.json").digest(), sample_manifest().digest());
}

TEST(DatasetManifestTest, HostileFieldsAreRefusedByName) {
  using Change = std::function<void(ordered_json&)>;
  const auto shard = [](const char* key, const ordered_json& value) -> Change {
    return [=](ordered_json& o) { o["shards"][0][key] = value; };
  };
  const auto top = [](const char* key, const ordered_json& value) -> Change {
    return [=](ordered_json& o) { o[key] = value; };
  };
  const std::vector<std::pair<Change, std::string>> cases = {
      {top("format", "other"), "format"},
      {top("kind", "images"), "kind"},
      {top("dtype", "F32"), "dtype"},
      {top("vocab", 0), "vocab"},
      {top("vocab", 65537), "vocabulary"},
      {top("vocab", -1), "vocab"},
      {top("vocab", 1.5), "vocab"},
      {top("tokenizer", 3), "name"},
      {top("block_bytes", 4096), "block_bytes"},
      {top("n_tokens", 5), "n_tokens"},
      {top("n_docs", 5), "n_docs"},
      {top("digest", "sha256:0"), "digest"},
      {top("shards", ordered_json::array()), "no shards"},
      {top("shards", ordered_json::object()), "shards"},
      {[](ordered_json& o) { o.erase("source"); }, "source"},
      {[](ordered_json& o) { o["shards"][1]["path"] = o["shards"][0]["path"]; }, "twice"},
      {shard("path", "../outside.h5"), "not a plain relative path"},
      {shard("path", "/etc/passwd"), "not a plain relative path"},
      {shard("path", "shards/../../x"), "not a plain relative path"},
      {shard("path", "./x"), "not a plain relative path"},
      {shard("path", "shards/"), "not a plain relative path"},
      {shard("path", ""), "not a plain relative path"},
      {shard("path", std::string("a\0b", 3)), "not a plain relative path"},
      {shard("bytes", 1), "ends beyond"},
      {shard("bytes", 9'000'000'000'000'000'000), "bytes"},
      {shard("bytes", std::int64_t{1} << 60), "blocks"},
      {shard("n_tokens", 1), "documents"},
      {shard("n_tokens", std::int64_t{1} << 60), "data_bytes"},
      {shard("n_docs", 0), "n_docs"},
      {shard("n_docs", 524289), "documents"},
      {shard("docs_bytes", 33), "docs_bytes"},
      {shard("docs_bytes", 24), "docs_bytes"},
      {shard("data_offset", 4097), "multiple of 8"},
      {shard("data_offset", std::int64_t{1} << 60), "ends beyond"},
      {shard("docs_offset", std::int64_t{1} << 60), "ends beyond"},
      {shard("docs_offset", 8192), "overlap"},
      {shard("xxh3", "12"), "digest"},
      {shard("blocks", "12"), "digest"},
      {shard("blocks", std::string(32, 'g')), "digest"},
  };
  for (const auto& [change, word] : cases) {
    const std::string text = altered(change);
    EXPECT_THAT(refusal(text), testing::AllOf(HasSubstr("m.json"), HasSubstr(word)));
  }
}

// Does what tests/fuzz/dataset_manifest_fuzz.cc does, from a fixed seed: any text with a valid seal
// is a manifest or a DataError.
TEST(DatasetManifestTest, MutatedTextsAreParsedOrRefused) {
  const std::string whole = manifest_text(sample_manifest());
  const std::string body = whole.substr(0, whole.rfind(",\n \"seal\""));
  const std::vector<std::string> pieces = {
      "-1",   "9223372036854775808", "1e999", "null", "{", "}", "[", "]", "\"", "\\u0000",
      "\xFF", "18446744073709551615"};
  int refused = 0;
  std::uint64_t state = 1;
  const auto random = [&](std::size_t below) {
    state = mix64(state);
    return static_cast<std::size_t>(state % below);
  };
  for (int round = 0; round < 4000; ++round) {
    std::string text = body;
    for (std::size_t change = 0; change <= random(3); ++change) {
      const std::size_t at = random(text.size());
      const std::size_t length = random(12);
      switch (random(4)) {
        case 0:
          text[at] = static_cast<char>(random(256));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.replace(at, std::min(length, text.size() - at), pieces[random(pieces.size())]);
          break;
        default:
          text.insert(at, body.substr(random(body.size()), 10 * length));
      }
    }
    try {
      const DatasetManifest manifest = parse_dataset_manifest(seal_body(text), "mutated");
      EXPECT_EQ(parse_dataset_manifest(manifest_text(manifest), "again").digest(),
                manifest.digest());
    } catch (const DataError&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 3000);
}

class FolderTest : public DataTest {};

TEST_F(FolderTest, WhatIsNotADatasetIsRefusedWithAHint) {
  EXPECT_THROW(read_manifest_text(folder_ / "absent"), NotFound);
  EXPECT_THAT(message_of<DataError>([&] { read_manifest_text(folder_); }),
              HasSubstr("trireme data pack"));
  write("foreign/a.h5", "x");
  EXPECT_THAT(message_of<DataError>([&] { read_manifest_text(folder_ / "foreign"); }),
              HasSubstr("trireme data convert"));
  EXPECT_THAT(message_of<DataError>([&] { read_manifest_text(folder_ / "foreign/a.h5"); }),
              HasSubstr("trireme data convert"));
  fs::create_directories(folder_ / "half/.pack");
  EXPECT_THAT(message_of<DataError>([&] { read_manifest_text(folder_ / "half"); }),
              HasSubstr("is unfinished"));
}

}  // namespace
}  // namespace trireme
