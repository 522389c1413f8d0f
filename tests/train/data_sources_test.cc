#include "src/train/run/data_sources.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "src/base/error.h"
#include "tests/support/message_of.h"
#include "tests/support/temp_folder.h"

namespace trireme {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// Reads a value of data.train, and what is wrong with it.
struct ReadSources {
  explicit ReadSources(const std::string& value) {
    ConfigBinder b;
    b.add_arguments({"data.train=" + value});
    Mappings items;
    b.mappings("data.train", items, "path", "x");
    sources = read_data_sources(b, items);
    try {
      b.finish();
    } catch (const ConfigError& error) {
      refusal = error.what();
    }
  }
  std::vector<DataSource> sources;
  std::string refusal;
};

std::vector<std::string> names_in(const std::string& value) {
  std::vector<std::string> names;
  for (const DataSource& source : ReadSources(value).sources) {
    names.push_back(source.name);
  }
  return names;
}

TEST(DataSources, APathIsASource) {
  const ReadSources read("data/web/train");
  ASSERT_EQ(read.sources.size(), 1U);
  EXPECT_EQ(read.sources[0].path, "data/web/train");
  EXPECT_EQ(read.sources[0].key(1), "data.train");
  EXPECT_EQ(mixture_text(read.sources), "");
  EXPECT_EQ(mixture_of(read.sources, {100}, 4).sources(), 1U);
}

TEST(DataSources, AreCalledAfterTheirFolders) {
  EXPECT_THAT(names_in("[data/web/train, data/code/train/, books, ./x/validation]"),
              ElementsAre("web", "code", "books", "x"));
  EXPECT_THAT(names_in("[{name: a, path: data/train}, {path: b}]"), ElementsAre("a", "b"));
  EXPECT_EQ(ReadSources("[a, b]").sources[1].key(2), "data.train.b");
}

TEST(DataSources, WhatIsWrongIsNamed) {
  for (const auto& [value, words] : std::vector<std::pair<std::string, std::string>>{
           {"[{weight: 1}]", "entry 1: path is missing"},
           {"[{path: }]", "entry 1: path is ~, but it takes a value"},
           {"[{path: a, weight: 0}, {path: b, weight: 1}]",
            "entry 1: weight is 0, but a weight is"},
           {"[{path: a, weight: -2}, {path: b, weight: 1}]", "entry 1: weight is -2, but a weight"},
           {"[{path: a, weight: nan}, {path: b, weight: 1}]", "entry 1: weight is nan"},
           {"[{path: a, weight: 1e7}, {path: b, weight: 1}]", "from 1e-09 to 1000000"},
           {"[{path: a, weight: 1e-10}, {path: b, weight: 1}]", "weight is 1e-10"},
           {"[{path: a, weight: much}, {path: b, weight: 1}]", "weight is much"},
           {"[{path: a, weight: 1}, b]", "either values or mappings"},
           {"[{path: a, weight: 1}, {path: b}]", "1 of 2 sources have a weight: give one to all"},
           {"[{path: a, epochs: 0}, {path: b}]", "epochs is 0, but it takes an integer from 1"},
           {"[{path: a, epochs: 1.5}, {path: b}]", "epochs is 1.5"},
           {"[{path: a, wieght: 1}]", "unknown key wieght; a source has path, name, weight"},
           {"[{path: a, weight: {5: 1}}, {path: b, weight: 1}]", "no value for step 0"},
           {"[{path: a, weight: {0: 1, x: 1}}, {path: b, weight: 1}]", "changes at a step"},
           {"[{path: a, weight: {0: 1, 00: 2}}, {path: b, weight: 1}]", "two values for one step"},
           {"[{path: a, weight: {0: 0}}, {path: b, weight: 1}]", "weight is 0 in all steps"},
           {"[{path: a, weight: {0: 1, 9: 0}}, {path: b, weight: {0: 1, 5: 0}}]",
            "all weights are 0 from step 9 on"},
           {"[x/a, y/a]", "the name a occurs twice: set name to another"},
           {"[{name: a, path: p/q}, {name: b, path: p/q}]", "p/q occurs twice"},
           {"[{name: a, path: p/q}, {name: b, path: p/./q}]", "p/./q occurs twice, first as p/q"},
           {"[{name: a, path: p/q}, {name: b, path: p/q/}]", "p/q/ occurs twice, first as p/q"},
           {"[{name: a/b, path: p}, q]", "either values or mappings"},
           {"[{name: a/b, path: p}, {path: q}]", "the name 'a/b' is not allowed"},
           {"[{name: x.provenance, path: p}, {path: q}]", "does not end in 'provenance'"},
           {"[]", "data.train: [] is not allowed"}}) {
    std::string refusal;
    try {
      refusal = ReadSources(value).refusal;
    } catch (const ConfigError& error) {  // while parsing
      refusal = error.what();
    }
    EXPECT_THAT(refusal, HasSubstr(words)) << value;
  }
  std::string many = "[";
  for (int i = 0; i < 257; ++i) {
    many += fmt::format("d{}, ", i);
  }
  EXPECT_THAT(ReadSources(many + "]").refusal, HasSubstr("257 datasets are listed, and 256"));
}

TEST(DataSources, AFolderIsTheSameThroughALinkAndByItsAbsolutePath) {
  const TempFolder temp;
  const std::filesystem::path folder = temp.path() / "a";
  std::filesystem::create_directory(folder);
  std::filesystem::create_directory_symlink("a", temp.path() / "link");
  for (const std::filesystem::path& other :
       {temp.path() / "link", temp.path() / "link" / "", std::filesystem::relative(folder)}) {
    EXPECT_THAT(ReadSources(fmt::format("[{{name: x, path: {}}}, {{name: y, path: {}}}]",
                                        folder.string(), other.string()))
                    .refusal,
                HasSubstr(fmt::format("{} occurs twice, first as", other.string())));
  }
}

TEST(DataSources, SharesFollowWeightsOrSizes) {
  const auto counts = [](const std::string& value, const std::vector<std::int64_t>& samples,
                         std::int64_t n) {
    const Mixture mixture = mixture_of(ReadSources(value).sources, samples, 4);
    return std::vector<std::int64_t>{mixture.count(0, n), mixture.count(1, n)};
  };
  EXPECT_THAT(counts("[{path: a, weight: 0.7}, {path: b, weight: 0.3}]", {5, 5}, 1000),
              ElementsAre(700, 300));
  EXPECT_THAT(counts("[a, b]", {300, 100}, 400), ElementsAre(300, 100));
  EXPECT_THAT(counts("[{path: a}, {path: b, epochs: 3}]", {300, 100}, 600), ElementsAre(300, 300));
  // Steps have 4 samples, so that the weights change at sample 40.
  EXPECT_THAT(counts("[{path: a, weight: 1}, {path: b, weight: {0: 0, 10: 3}}]", {9, 9}, 40),
              ElementsAre(40, 0));
  EXPECT_THAT(counts("[{path: a, weight: 1}, {path: b, weight: {0: 0, 10: 3}}]", {9, 9}, 80),
              ElementsAre(50, 30));
  EXPECT_THAT(message_of<ConfigError>([&] {
                counts("[{path: a, epochs: 1000000}, {path: b}]", {std::int64_t{1} << 40, 1}, 1);
              }),
              HasSubstr("data.train.a: 1000000 epochs of 1099511627776 samples are too many"));
}

TEST(DataSources, ASourceGivesNoMoreThanItsEpochs) {
  const auto sources =
      ReadSources("[{path: a, weight: 1}, {path: b, weight: 1, epochs: 2}]").sources;
  const std::vector<std::int64_t> samples = {5, 10};
  const Mixture mixture = mixture_of(sources, samples, 4);
  EXPECT_NO_THROW(check_epochs(sources, samples, mixture, 0));
  EXPECT_NO_THROW(check_epochs(sources, samples, mixture, 40));
  EXPECT_THAT(
      message_of<ConfigError>([&] { check_epochs(sources, samples, mixture, 42); }),
      HasSubstr("data.train.b: the run takes 21 samples of b, which has 10: that is 2.10 epochs, "
                "and `epochs` allows 2"));
}

TEST(DataSources, TheTextTellsMixturesApart) {
  EXPECT_EQ(mixture_text(ReadSources("[{path: a, weight: 0.70}, {path: b, weight: 3}]").sources),
            "a 0.7, b 3");
  EXPECT_EQ(mixture_text(ReadSources("[{path: a}, {path: b, epochs: 2}]").sources),
            "a by size x 1, b by size x 2");
  EXPECT_EQ(
      mixture_text(ReadSources("[{path: a, weight: {0: 1, 5: 2}}, {path: b, weight: 1}]").sources),
      "a 0:1 5:2, b 1");
}

}  // namespace
}  // namespace trireme
