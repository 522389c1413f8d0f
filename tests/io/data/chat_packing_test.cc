// Tests datasets of conversations: their tokens and loss masks, with and without encryption, what
// the loader makes of a mask, and what other commands do with it.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/data/chat_marks.h"
#include "io/data/convert.h"
#include "io/data/dataset_export.h"
#include "io/data/loader.h"
#include "io/data/verify.h"
#include "src/base/error.h"
#include "src/base/ignored_target.h"
#include "tests/io/data/data_fixture.h"
#include "tests/io/data/encrypted_data.h"

namespace trireme {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const char* const kTemplate =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }};{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";
const char* const kLines =
    R"({"messages": [{"role": "user", "content": "ab"}, {"role": "assistant", "content": "cd"}]})"
    "\n"
    R"({"messages": [{"role": "user", "content": "e"}, {"role": "assistant", "content": "f"},)"
    R"( {"role": "user", "content": "g"}, {"role": "assistant", "content": "hi"}]})"
    "\n";
const std::string kText = "<user>ab;<assistant>cd;<user>e;<assistant>f;<user>g;<assistant>hi;";
const std::string kMarks =
    std::string(20, '0') + "111" + std::string(19, '0') + "11" + std::string(19, '0') + "111";

// Returns the mask of all shards, as text.
std::string mask_of(const Dataset& dataset) {
  std::string mask;
  std::vector<std::byte> scratch;
  for (std::size_t i = 0; i < dataset.manifest().shards.size(); ++i) {
    const std::int64_t count = dataset.manifest().shards[i].n_tokens;
    const std::byte* found = dataset.read_mask({i, 0, count}, scratch);
    for (std::int64_t t = 0; t < count; ++t) {
      mask += found[t] == std::byte{0} ? '0' : '1';
    }
  }
  return mask;
}

std::string text_of_tokens(const Dataset& dataset) {
  const std::vector<std::int32_t> tokens = all_tokens(dataset);
  return make_tokenizer("bytes")->decode(tokens);
}

class ChatPacking : public EncryptedDataTest {
 protected:
  PackOptions chats(const std::string& in, const std::string& out) const {
    PackOptions o = options(in, out);
    o.field = "messages";
    o.chat.emplace(kTemplate);
    return o;
  }
  std::string refusal(const std::string& line) const {
    write("bad.jsonl", line);
    return message_of<DataError>([&] { pack(chats("bad.jsonl", "bad"), {}); });
  }
};

TEST_F(ChatPacking, MarksTheAnswersOfEachConversation) {
  ASSERT_EQ(kMarks.size(), kText.size());
  write("in.jsonl", kLines);
  const PackOptions o = chats("in.jsonl", "data");
  pack(o, {});
  const Dataset dataset = Dataset::open(o.out);
  const DatasetManifest& manifest = dataset.manifest();
  EXPECT_EQ(text_of_tokens(dataset), kText);
  EXPECT_EQ(mask_of(dataset), kMarks);
  EXPECT_EQ(manifest.version(), kMaskedDatasetVersion);
  EXPECT_EQ(manifest.n_targets(), std::ranges::count(kMarks, '1'));
  EXPECT_EQ(manifest.n_docs(), 2);
  EXPECT_EQ(dataset.document_offsets(0), (std::vector<std::int64_t>{0, 23, 66}));
  EXPECT_TRUE(verify_shards(o.out, manifest, 0, 1, {}).damage.empty());
  // The same inputs without marks are another dataset.
  PackOptions other = o;
  other.chat.emplace(std::string(kTemplate) + " ");
  EXPECT_THROW(pack(other, {}), PolicyError);
}

TEST_F(ChatPacking, IsTheSameForAnyRanksAndShards) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) {
    lines += fmt::format(
        "{{\"messages\": [{{\"role\": \"user\", \"content\": \"{}\"}}, {{\"role\": \"assistant\", "
        "\"content\": \"{}\"}}]}}\n",
        i, i * i);
  }
  write("in.jsonl", lines);
  std::vector<std::string> digests;
  for (const int ranks : {1, 3}) {
    PackOptions o = chats("in.jsonl", fmt::format("data-{}", ranks));
    o.shard_bytes = 1 << 16;
    run_ranks(ranks, [&](const RankGroup& group) { pack(o, group); });
    const Dataset dataset = Dataset::open(o.out);
    ASSERT_GT(dataset.manifest().shards.size(), 2U);
    digests.push_back(dataset.manifest().digest());
    EXPECT_EQ(std::ranges::count(mask_of(dataset), '1'), dataset.manifest().n_targets());
  }
  EXPECT_EQ(digests[0], digests[1]);
}

TEST_F(ChatPacking, TheLoaderIgnoresOtherTargets) {
  write("in.jsonl", kLines);
  const PackOptions o = chats("in.jsonl", "data");
  pack(o, {});
  const Dataset dataset = Dataset::open(o.out);
  constexpr std::int64_t kTime = 16;
  Loader loader(dataset, Sampler(dataset.samples(kTime), 1, Shuffle::none, 1),
                {.sequence = kTime,
                 .batches = 4,
                 .micro_batch = 4,
                 .micros = [](std::int64_t) { return std::vector<std::int64_t>{0}; },
                 .steps = 1},
                0);
  const LoadedMicroBatch batch = loader.next();
  for (std::int64_t i = 0; i < 4 * kTime; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(as<std::int32_t>(batch.ids)[i], kText[at]);
    EXPECT_EQ(as<std::int32_t>(batch.targets)[i],
              kMarks[at + 1] == '1' ? kText[at + 1] : kIgnoredTarget);
  }
}

TEST_F(ChatPacking, MasksAreEncryptedAndDecryptedWithTheirTokens) {
  write("in.jsonl", kLines);
  PackOptions o = chats("in.jsonl", "sealed");
  o.make_key = key_maker(ring_);
  const PackReport report = pack(o, {}).front();
  EXPECT_EQ(mask_of(Dataset::open(o.out, ring_)), kMarks);
  EXPECT_EQ(Dataset::open(o.out).manifest().version(), kMaskedDatasetVersion);
  const PackOptions plain = chats("in.jsonl", "plain");
  EXPECT_EQ(pack(plain, {}).front().digest, report.digest);
  for (const bool encrypts : {false, true}) {
    recode({.folder = o.out, .encrypts = encrypts, .make_key = key_maker(ring_)}, {});
    const Dataset dataset = encrypts ? Dataset::open(o.out, ring_) : Dataset::open(o.out);
    EXPECT_EQ(mask_of(dataset), kMarks);
    EXPECT_TRUE(verify_shards(o.out, dataset.manifest(), 0, 1, {}).damage.empty());
  }
}

TEST_F(ChatPacking, DuplicatesAreLeftOutWithTheirMarks) {
  write("in.jsonl", std::string(kLines) + kLines);
  PackOptions o = chats("in.jsonl", "data");
  o.deduplication = Deduplication::exact;
  EXPECT_EQ(pack(o, {}).front().counts.duplicates, 2);
  EXPECT_EQ(mask_of(Dataset::open(o.out)), kMarks);
}

TEST_F(ChatPacking, ExportsTheMaskBesideTheTokens) {
  write("in.jsonl", kLines);
  const PackOptions o = chats("in.jsonl", "data");
  pack(o, {});
  const Dataset dataset = Dataset::open(o.out);
  for (const ArrayFormat format : {ArrayFormat::npy, ArrayFormat::megatron}) {
    const DatasetExport to{format, folder_ / (format == ArrayFormat::npy ? "npy" : "megatron")};
    export_dataset(dataset, to, {});
    const auto files = exported_files(to, true);
    ASSERT_EQ(files.size(), 3U);
    const std::string mask = read_file(files[2]);
    std::string found;
    for (const char c : mask.substr(128)) {
      found += static_cast<char>('0' + c);
    }
    EXPECT_EQ(found, kMarks);
    EXPECT_THAT(mask, HasSubstr("'shape': (66,)"));
  }
}

TEST_F(ChatPacking, ConversionRefusesToLoseAMask) {
  write("in.jsonl", kLines);
  const PackOptions o = chats("in.jsonl", "data");
  pack(o, {});
  const Dataset dataset = Dataset::open(o.out);
  const auto refused = [&](const fs::path& input) {
    ConvertOptions back;
    back.inputs = {input};
    back.out = folder_ / "back";
    back.vocab = 257;
    const std::string message = message_of<DataError>([&] { convert(back, {}); });
    EXPECT_FALSE(fs::exists(back.out)) << input << ": nothing is written";
    return message;
  };
  for (const ArrayFormat format : {ArrayFormat::npy, ArrayFormat::megatron}) {
    const bool is_npy = format == ArrayFormat::npy;
    const fs::path folder = folder_ / (is_npy ? "npy" : "megatron");
    export_dataset(dataset, {format, folder / "d"}, {});
    const std::string mask = (folder / "d.loss_mask.npy").string() + " is a loss mask";
    EXPECT_THAT(refused(folder), HasSubstr(mask));
    EXPECT_THAT(refused(folder / "d.loss_mask.npy"), HasSubstr(mask));
    EXPECT_THAT(refused(folder / (is_npy ? "d.npy" : "d.idx")), HasSubstr(mask));
    EXPECT_THAT(refused(folder / (is_npy ? "d.npy" : "d")), HasSubstr(mask));
  }
  const fs::path shard = folder_ / "alone.h5";
  fs::copy(o.out / dataset.manifest().shards.front().path, shard);
  EXPECT_THAT(refused(shard), HasSubstr(shard.string() + ": /loss_mask is a loss mask"));
}

TEST_F(ChatPacking, RefusesWhatIsNoConversation) {
  const std::string good(kLines);
  EXPECT_THAT(refusal(good + "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}]}\n"),
              AllOf(HasSubstr("bad.jsonl: line 3"), HasSubstr("no answer")));
  EXPECT_THAT(refusal("{\"text\": \"a\"}\n"), HasSubstr("no field 'messages'"));
  EXPECT_THAT(refusal("{\"messages\": 1}\n"), HasSubstr("not a list"));
  EXPECT_THAT(refusal("{\n"), HasSubstr("line 1"));
  write("plain/a.txt", "text");
  EXPECT_THAT(message_of<DataError>([&] { pack(chats("plain", "bad"), {}); }),
              AllOf(HasSubstr("a.txt"), HasSubstr("--messages")));
}

TEST_F(ChatPacking, ManifestsThatContradictThemselvesAreRefused) {
  write("in.jsonl", kLines);
  const PackOptions o = chats("in.jsonl", "data");
  pack(o, {});
  const DatasetManifest good = Dataset::open(o.out).manifest();
  const auto refused = [&](const auto& change) {
    DatasetManifest bad = good;
    change(bad.shards.front());
    return message_of<DataError>([&] { parse_dataset_manifest(manifest_text(bad), "m"); });
  };
  EXPECT_EQ(parse_dataset_manifest(manifest_text(good), "m").n_targets(), good.n_targets());
  EXPECT_THAT(refused([](ShardEntry& s) { --s.mask_bytes; }), HasSubstr("/loss_mask"));
  EXPECT_THAT(refused([](ShardEntry& s) { s.mask_offset = s.bytes; }), HasSubstr("/loss_mask"));
  EXPECT_THAT(refused([](ShardEntry& s) { s.mask_offset = s.data_offset; }),
              HasSubstr("/loss_mask"));
  EXPECT_THAT(refused([](ShardEntry& s) { s.mask_offset = s.docs_offset; }),
              HasSubstr("/loss_mask"));
  EXPECT_THAT(refused([](ShardEntry& s) { s.n_targets = s.n_tokens + 1; }), HasSubstr("n_targets"));
  DatasetManifest two = good;
  two.shards.push_back(two.shards.front());
  two.shards.back().path = "shards/00001.h5";
  two.shards.back().mask_bytes = 0;
  EXPECT_THAT(message_of<DataError>([&] { parse_dataset_manifest(manifest_text(two), "m"); }),
              HasSubstr("some shards have a loss mask"));
}

}  // namespace
}  // namespace trireme
