#include "io/quality/quality_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/io/archive/make_archives.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

std::size_t number_of(std::string_view script) {
  return static_cast<std::size_t>(std::ranges::find(kScriptNames, script) - kScriptNames.begin());
}

TEST(Scripts, AreThoseOfTheBlocks) {
  for (const auto& [letter, script] :
       std::vector<std::pair<char32_t, const char*>>{{U'a', "latin"},
                                                     {U'\u00e9', "latin"},
                                                     {U'\u0634', "arabic"},
                                                     {U'\u0416', "cyrillic"},
                                                     {U'\u03a9', "greek"},
                                                     {U'\u05d0', "hebrew"},
                                                     {U'\u0939', "devanagari"},
                                                     {U'\u0e01', "thai"},
                                                     {U'\uac00', "hangul"},
                                                     {U'\u3042', "kana"},
                                                     {U'\u6f22', "han"},
                                                     {U'\U00020000', "han"},
                                                     {U'\ufe8e', "arabic"},
                                                     {U'\u13a0', "other"},
                                                     {U'\u1e9e', "latin"},
                                                     {U'\u12a0', "ethiopic"},
                                                     {U'\U0010ffff', "other"}}) {
    EXPECT_EQ(kScriptNames.at(script_number(letter)), script) << static_cast<std::uint32_t>(letter);
  }
  EXPECT_EQ(script_number(0), 0U);
}

class QualityReportTest : public DataTest {
 protected:
  QualityReport on_texts(const std::string& in, const RankGroup& ranks = {}) const {
    const InputFiles found = find_input_files({(folder_ / in).string()}, {}, {});
    return report_on_texts(found.files, "text", ranks, {});
  }
  void write_inputs() const {
    write("in/a.txt", "The ship sails under oars. caf\xC3\xA9 a@b.org");
    write("in/b.jsonl",
          "{\"text\": \"\\u0627\\u0644\\u0633\\u0641\\u064a\\u0646\\u0629 x\"}\n"
          "{\"text\": \"the SHIP sails under oars: caf\xC3\xA9 a b org\"}\n"
          "{\"text\": \"\"}\n{\"text\": \"123\"}\n");
    write("in/c.txt.gz", gzip_of("The ship sails under oars. caf\xC3\xA9 a@b.org"));
    write("in/d.txt", "latin1: \xE9");
    write("in/e.bin", std::string("a\0b", 3));
    write("in/f.tar", tar_member("1.txt", "123") + tar_member("x.jpg", "") + kTarEnd);
  }
};

TEST_F(QualityReportTest, CountsWhatTextsHold) {
  write_inputs();
  const QualityReport report = on_texts("in");
  EXPECT_EQ(report.documents, 7);
  EXPECT_EQ(report.equal, 2);
  EXPECT_EQ(report.near, 3) << "another case and other punctuation";
  const TextQuality& quality = report.quality;
  EXPECT_EQ(quality.bytes.count(), 7);
  EXPECT_EQ(quality.bytes.least(), 3);
  EXPECT_EQ(quality.bytes.most(), 40);
  EXPECT_EQ(quality.characters.most(), 39);
  EXPECT_EQ(quality.not_utf8, 1);
  EXPECT_EQ(quality.letters.at(number_of("arabic")), 7);
  EXPECT_EQ(quality.documents.at(number_of("arabic")), 1);
  EXPECT_EQ(quality.documents.at(number_of("latin")), 4);
  EXPECT_EQ(quality.patterns.at(0), 2);
  EXPECT_EQ(quality.documents_with.at(0), 2);
  EXPECT_EQ(report.inputs.files, 5);
  EXPECT_EQ(report.inputs.binary_files, 1);
  EXPECT_EQ(report.inputs.empty_documents, 1);
  EXPECT_EQ(report.inputs.skipped_members, 1);
}

TEST_F(QualityReportTest, RanksAndDatasetsGiveTheSame) {
  write_inputs();
  for (int i = 0; i < 50; ++i) {
    write(fmt::format("in/more{}.txt", i), fmt::format("document {} of some words", i % 40));
  }
  const QualityReport alone = on_texts("in");
  PackOptions o = options("in", "data");
  o.shard_bytes = 1 << 16;
  pack(o, {});
  const Dataset dataset = Dataset::open(o.out);
  const auto tokenizer = make_tokenizer("bytes");
  for (const int size : {2, 5}) {
    run_ranks(size, [&](const RankGroup& ranks) {
      for (const bool of_dataset : {false, true}) {
        const QualityReport report = of_dataset
                                         ? report_on_dataset(dataset, tokenizer.get(), ranks, {})
                                         : on_texts("in", ranks);
        EXPECT_EQ(report.quality.bytes.numbers(), alone.quality.bytes.numbers());
        EXPECT_EQ(report.quality.letters, alone.quality.letters);
        EXPECT_EQ(report.quality.patterns, alone.quality.patterns);
        EXPECT_EQ(report.documents, alone.documents);
        EXPECT_EQ(report.equal, alone.equal);
        EXPECT_EQ(report.near, alone.near);
        EXPECT_EQ(report.inputs.files, of_dataset ? 0 : alone.inputs.files);
        EXPECT_EQ(report.quality.tokens.sum(),
                  of_dataset ? alone.quality.bytes.sum() + alone.documents : 0);
      }
    });
  }
}

TEST_F(QualityReportTest, TokensOfAnUnknownTokenizerAreCounted) {
  write("in/a.txt", "one");
  write("in/b.txt", "one");
  write("in/c.txt", "longer");
  pack(options("in", "data"), {});
  const QualityReport report = report_on_dataset(Dataset::open(folder_ / "data"), nullptr, {}, {});
  EXPECT_FALSE(report.has_texts);
  EXPECT_EQ(report.documents, 3);
  EXPECT_EQ(report.equal, 1);
  EXPECT_EQ(report.near, std::nullopt);
  EXPECT_EQ(report.quality.tokens.most(), 7);
}

}  // namespace
}  // namespace trireme
