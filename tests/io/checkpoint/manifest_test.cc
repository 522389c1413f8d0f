#include "io/checkpoint/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/checkpoint/names.h"
#include "src/base/error.h"
#include "src/base/philox.h"
#include "src/base/sealed_json.h"

namespace trireme {
namespace {

using testing::HasSubstr;

Manifest sample() {
  Manifest manifest;
  manifest.software = "trireme test";
  manifest.created = "2025-01-31T12:00:00Z";
  manifest.generation = 3;
  manifest.read_back = true;
  manifest.meta.step = 100;
  manifest.meta.samples = 3200;
  manifest.meta.config = JsonValue::parse(R"({"model": {"hidden": 768}})");
  manifest.shards = {{"shard-00000.safetensors", (1 << 20) + 5, 17, {1, 2}},
                     {"shard-00003.safetensors", 8192, 18, {3}}};
  manifest.tensors = {
      {"a",
       DType::f32,
       {4, 6},
       {{0, 4096, Extent::box({0, 0}, {4, 2})}, {1, 4096, Extent::box({0, 2}, {4, 4})}}},
      {"b", DType::bf16, {10}, {{0, 4200, Extent::flat(0, 3)}, {1, 5000, Extent::flat(3, 7)}}},
      {"c", DType::i64, {}, {{1, 6000, Extent::whole({})}}}};
  return manifest;
}

// Returns the sample's text without its seal.
std::string sample_body() {
  const std::string text = to_text(sample());
  return text.substr(0, text.rfind(",\n \"seal\""));
}

// Returns the sample's text with a change and a valid seal, which only a program can make.
std::string changed_manifest(const std::string& from, const std::string& to) {
  std::string body = sample_body();
  const std::size_t at = body.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return seal_body(body.replace(at, from.size(), to));
}

std::string fault_of_manifest(const std::string& text) {
  try {
    parse_manifest(text, "X");
    return "";
  } catch (const DataError& e) {
    return e.what();
  }
}

TEST(Manifest, ADatasetIsCalledOne) {
  const std::string text = R"({"format": "trireme-dataset", "version": 1})";
  EXPECT_EQ(fault_of_manifest(text),
            "X: this is a dataset, not a checkpoint (`trireme data info` describes it)");
  EXPECT_EQ(fault_of_manifest(seal_body(text.substr(0, text.size() - 1))), fault_of_manifest(text));
}

TEST(Manifest, SaysAgainWhatItWasTold) {
  const std::string text = to_text(sample());
  EXPECT_EQ(to_text(parse_manifest(text, "X")), text);
  EXPECT_NE(parse_manifest(text, "X").find("b"), nullptr);
  EXPECT_EQ(parse_manifest(text, "X").find("bb"), nullptr);
}

TEST(Manifest, KeepsTheSha256OfShards) {
  Manifest manifest = sample();
  manifest.shards[1].sha256 = std::string(64, 'a');
  const Manifest read = parse_manifest(to_text(manifest), "X");
  EXPECT_EQ(read.shards[0].sha256, "");
  EXPECT_EQ(read.shards[1].sha256, std::string(64, 'a'));
  EXPECT_EQ(parse_shard_table(to_text(ShardTable{{manifest.shards[1]}, {}}), "X").shards[0].sha256,
            std::string(64, 'a'));
  for (const char* const wrong : {"x", "aaaaaaaaaaaaaaaa", "sha256:"}) {
    manifest.shards[1].sha256 = wrong;
    EXPECT_THAT(fault_of_manifest(to_text(manifest)), HasSubstr("is not a SHA-256"));
  }
}

TEST(Manifest, KeepsItsLabel) {
  Manifest manifest = sample();
  manifest.meta.label = parse_label({"classification=secret", "owner=health"});
  const std::string text = to_text(manifest);
  EXPECT_THAT(text, HasSubstr("\"version\": 3"));
  EXPECT_EQ(parse_manifest(text, "X").meta.label, manifest.meta.label);
  EXPECT_FALSE(parse_manifest(to_text(sample()), "X").meta.label);
}

TEST(Manifest, RefusesALabelInAnOlderVersion) {
  EXPECT_THAT(fault_of_manifest(changed_manifest("\"step\"", "\"label\": {}, \"step\"")),
              HasSubstr("classification"));
  EXPECT_THAT(fault_of_manifest(
                  changed_manifest("\"step\"", "\"label\": {\"classification\": \"a\"}, \"step\"")),
              HasSubstr("it has a label, but 'version' is 1: the manifest was edited"));
  EXPECT_THAT(fault_of_manifest(changed_manifest("\"version\": 1", "\"version\": 3")),
              HasSubstr("it has no label, but 'version' is 3"));
}

TEST(Manifest, SkipsUnknownFields) {
  EXPECT_EQ(fault_of_manifest(changed_manifest("\"step\"", "\"colour\": [1, {}], \"step\"")), "");
}

TEST(Manifest, NamesWhatIsWrong) {
  const std::vector<std::array<const char*, 3>> cases = {
      {"\"step\": 100", "\"step\": -1", "'step'"},
      {"\"step\": 100", "\"step\": 1.5", "'step'"},
      {"\"step\": 100", "\"step\": 18446744073709551615", "'step'"},
      {"\"step\": 100", "\"stop\": 100", "'step' is missing"},
      {"\"version\": 1", "\"version\": 4", "version 4 is newer than 3"},
      {"\"version\": 1", "\"version\": \"1\"", "'version'"},
      {"\"version\": 1", "\"version\": 0", "'version'"},
      {"trireme-checkpoint", "something else", "not the manifest of"},
      {"\"read_back\": true", "\"read_back\": 1", "'read_back'"},
      {"shard-00000", "../../00000", "not a valid shard name"},
      {"shard-00000.", "shard-00003.", "not sorted by number"},
      {"\"bytes\":1048581", "\"bytes\":1048576", "block digests"},
      {"\"bytes\":8192", "\"bytes\":9223372036854775807", "'bytes'"},
      {"\"bytes\":8192", "\"bytes\":4096", "outside"},
      {"0000000000000003", "000000000000000g", "hexadecimal"},
      {"\"F32\"", "\"F31\"", "F31"},
      {"\"shape\":[4,6]", "\"shape\":[4,5]", "outside its tensor"},
      {"\"shape\":[4,6]", "\"shape\":[4,7]", "tensor a: blocks cover 24 of 28"},
      {"\"shape\":[4,6]", "\"shape\":[4,6,1]", "outside its tensor"},
      {"\"shape\":[4,6]", "\"shape\":[1,1,1,4,6]", "5 axes"},
      {"\"shape\":[4,6]", "\"shape\":[4294967296,4294967296]", "2^60"},
      {"\"shape\":[4,6]", "\"shape\":[0,1152921504606846976,1152921504606846976]", "2^60"},
      {"\"start\":[0,2]", "\"start\":[0,1]", "overlap"},
      {"\"start\":[0,2]", "\"start\":[0,3]", "outside its tensor"},
      {"\"start\":[3]", "\"start\":[2]", "tensor b: two blocks overlap"},
      {"\"length\":[7],\"offset\"", "\"length\":[6],\"offset\"", "cover 9 of 10"},
      {"\"length\":[7],\"offset\"", "\"length\":[-7],\"offset\"", "'length'"},
      {"\"kind\":\"flat\"", "\"kind\":\"flag\"", "unknown block kind"},
      {"\"kind\":\"flat\"", "\"kind\":\"box\"", "boxes and some are flat"},
      {"\"shard\":1", "\"shard\":2", "'shard'"},
      {"\"offset\":6000", "\"offset\":8190", "outside"},
      {"\"offset\":4200", "\"offset\":4127", "a and b share bytes 4127 to 4127 of shard-00000"},
      {"\"offset\":6000", "\"offset\":5000", "c and b share bytes 5000 to 5007 of shard-00003"},
      {"\"name\":\"b\"", "\"name\":\"a\"", "not sorted by name"},
      {"\"name\":\"b\"", "\"name\":\"\"", "empty"},
      {"\"name\":\"b\"", "\"name\":\"b\\u0000\"", "zero byte"},
      {"\"config\": {\"model\":{\"hidden\":768}}", "\"config\": []", "'config'"},
      {"\"shards\": [", "\"shards\": {}, \"x\": [", "'shards'"},
      {"\"step\": 100", "\"step\": 100,", "not JSON"}};
  for (const auto& [from, to, said] : cases) {
    EXPECT_THAT(fault_of_manifest(changed_manifest(from, to)), HasSubstr(said))
        << from << " -> " << to;
    EXPECT_THAT(fault_of_manifest(changed_manifest(from, to)), testing::StartsWith("X: "));
  }
}

// Such a name could make a message look as if the program had found no damage.
TEST(Manifest, NamesCannotForgeLines) {
  const std::string shard = shard_file_name(0);
  EXPECT_EQ(fault_of_manifest(changed_manifest(shard, "x\\ntrireme: all digests match: OK\\n")),
            "X: 'x\\ntrireme: all digests match: OK\\n' is not a valid shard name");
}

TEST(Manifest, WithoutShardsNoBlockHasOne) {
  const std::string body =
      R"({"format": "trireme-checkpoint", "version": 1, "software": "", "created": "",
      "generation": 1, "read_back": true, "step": 1, "samples": 0, "config": {}, "numerics": {},
      "extra": {}, "shards": [], "tensors": [{"name": "a", "dtype": "F32", "shape": [],
      "blocks": [{"shard": 0, "offset": 0, "kind": "box", "start": [], "length": []}]}])";
  EXPECT_THAT(fault_of_manifest(seal_body(body)), HasSubstr("'shard'"));
}

// Does a part of what tests/fuzz/checkpoint_manifest_fuzz.cc does: any text, also under a valid
// seal, is parsed or refused with a DataError.
TEST(Manifest, SurvivesMutations) {
  const std::string body = sample_body();
  constexpr std::string_view kBytes = "0123456789-.eE\"{}[],:\\ \n\x80\xff";
  for (std::uint64_t round = 0; round < 20'000; ++round) {
    std::string bad = body;
    for (std::uint64_t i = 0; i <= mix64(round) % 4; ++i) {
      const std::uint64_t random = mix64(7 * round + i);
      const std::size_t at = random % bad.size();
      const char byte = kBytes[(random >> 32) % kBytes.size()];
      switch ((random >> 60) % 3) {
        case 0:
          bad[at] = byte;
          break;
        case 1:
          bad.insert(at, 1, byte);
          break;
        default:
          bad.erase(at, 1 + (random >> 40) % 8);
      }
    }
    try {
      (void)to_text(parse_manifest(seal_body(bad), "X"));
    } catch (const DataError&) {
      continue;
    }
  }
}

TEST(Manifest, JoinsTheTablesOfAllRanks) {
  ShardTable first{{{"shard-00000.safetensors", 4200, 1, {1}}},
                   {{"w", DType::f32, {4}, {{0, 4096, Extent::flat(0, 2)}}}}};
  ShardTable third{{{"shard-00002.safetensors", 4300, 2, {2}}},
                   {{"w", DType::f32, {4}, {{0, 4096, Extent::flat(2, 2)}}}}};
  Manifest manifest;
  merge_tables({parse_shard_table(to_text(first), "1"), {}, third}, manifest);
  ASSERT_EQ(manifest.tensors.size(), 1U);
  EXPECT_EQ(manifest.tensors[0].blocks[1].shard, 1);
  EXPECT_EQ(manifest.shards[1].file, "shard-00002.safetensors");
  Manifest twice;
  EXPECT_THROW(merge_tables({first, first}, twice), InternalError);
  Manifest half;
  EXPECT_THROW(merge_tables({first}, half), InternalError);
}

TEST(Names, AreReadAsTheyAreWritten) {
  EXPECT_EQ(step_folder_name(100), "step-00000100");
  EXPECT_EQ(parse_step_folder_name("step-00000100"), 100);
  EXPECT_EQ(parse_step_folder_name("step-123456789"), 123456789);
  for (const char* bad : {"step-100", "step-00000100 ", "step-0000010a", "step--0000001", "step-",
                          "Step-00000100", "step-99999999999999999999"}) {
    EXPECT_FALSE(parse_step_folder_name(bad)) << bad;
  }
  EXPECT_EQ(parse_shard_file_name("shard-00017.safetensors"), 17);
  for (const char* bad : {"shard-17.safetensors", "shard-00017", "shard-.safetensors",
                          "shard-00017.safetensors.tmp", "x/shard-00017.safetensors"}) {
    EXPECT_FALSE(parse_shard_file_name(bad)) << bad;
  }
  const auto name = parse_transient_name(".tmp-100-3");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(name->to_string(), ".tmp-100-3");
  EXPECT_EQ(name->generation, 3);
  EXPECT_FALSE(parse_transient_name(".tmp-100"));
  EXPECT_FALSE(parse_transient_name(".tmp-a-3"));
}

}  // namespace
}  // namespace trireme
