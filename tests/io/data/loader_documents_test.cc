// The loader says where the documents of a micro-batch lie, and ignores targets in the next one.
#include <memory>

#include <gtest/gtest.h>

#include "io/data/loader.h"
#include "src/base/ignored_target.h"
#include "tests/io/data/data_fixture.h"

namespace trireme {
namespace {

using Ranges = std::vector<DocumentRange>;

std::vector<std::int32_t> numbers_of(const ConstView& view) {
  const auto* data = as<std::int32_t>(view);
  return {data, data + view.count};
}

class LoaderDocuments : public DataTest {
 protected:
  // Packs the texts as bytes; the token 256 ends each.
  Dataset packed(const std::string& name, const std::vector<std::string>& texts) {
    std::string lines;
    for (const std::string& text : texts) {
      lines += fmt::format("{{\"text\": \"{}\"}}\n", text);
    }
    write(name + ".jsonl", lines);
    const PackOptions o = options(name + ".jsonl", name);
    pack(o, {});
    return Dataset::open(o.out);
  }
  static LoaderSource source(const Dataset& dataset, std::int64_t sequence, Shuffle shuffle) {
    return {dataset, Sampler(dataset.samples(sequence), 1, shuffle, 3)};
  }
  static LoaderPlan plan_of(std::int64_t sequence, std::int64_t batch, std::int64_t micro) {
    return {.sequence = sequence,
            .batches = batch,
            .micro_batch = micro,
            .micros =
                [](std::int64_t count) {
                  std::vector<std::int64_t> all;
                  for (std::int64_t m = 0; m < count; ++m) {
                    all.push_back(m);
                  }
                  return all;
                },
            .separates_documents = true};
  }
};

TEST_F(LoaderDocuments, EndWhereTheTextsEnd) {
  const Dataset dataset = packed("texts", {"aaaa", "", "b", "ccccccccc"});
  Loader loader({source(dataset, 6, Shuffle::none)}, Mixture(), plan_of(6, 2, 2), 0);
  const LoadedMicroBatch batch = loader.next();
  EXPECT_EQ(*batch.documents, (Ranges{{0, 0, 5}, {0, 5, 1}, {1, 0, 1}, {1, 1, 5}}));
  constexpr std::int32_t kNone = kIgnoredTarget;
  EXPECT_EQ(numbers_of(batch.targets), (std::vector<std::int32_t>{'a', 'a', 'a', 256, kNone, 256,
                                                                  kNone, 'c', 'c', 'c', 'c', 'c'}));
  EXPECT_EQ(numbers_of(batch.ids),
            (std::vector<std::int32_t>{'a', 'a', 'a', 'a', 256, 'b', 256, 'c', 'c', 'c', 'c', 'c'}))
      << "all tokens are read";
}

// The first document has two samples, the others have one and two halves.
TEST_F(LoaderDocuments, AreNotNamedWhereEachSampleIsOne) {
  const Dataset dataset = packed("texts", {"aaaaaaaaaaa", "bbb", "ccccccccc"});
  Loader loader({source(dataset, 6, Shuffle::none)}, Mixture(), plan_of(6, 4, 2), 0);
  {
    const LoadedMicroBatch whole = loader.next();
    EXPECT_EQ(whole.documents, nullptr);
    EXPECT_EQ(numbers_of(whole.targets),
              (std::vector<std::int32_t>{'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 'a', 256,
                                         kIgnoredTarget}));
  }
  EXPECT_EQ(*loader.next().documents, (Ranges{{0, 0, 4}, {0, 4, 2}, {1, 0, 6}}));
}

TEST_F(LoaderDocuments, OfAMixtureComeInTheOrderOfRows) {
  const Dataset short_ones = packed("short", std::vector<std::string>(30, "aa"));
  const Dataset long_ones = packed("long", std::vector<std::string>(30, "bbbb"));
  const Mixture mixture({MixtureWeights{0, {1, 1}}});
  Loader loader({source(short_ones, 15, Shuffle::global), source(long_ones, 15, Shuffle::global)},
                mixture, plan_of(15, 4, 4), 0);
  Ranges expected;
  for (std::int64_t row = 0; row < 4; ++row) {
    const std::int64_t length = mixture(row).source == 0 ? 3 : 5;
    for (std::int64_t first = 0; first < 15; first += length) {
      expected.push_back({row, first, length});
    }
  }
  EXPECT_EQ(*loader.next().documents, expected);
}

TEST_F(LoaderDocuments, StayUntilTheMicroBatchIsGone) {
  const Dataset dataset = packed("texts", std::vector<std::string>(40, "aaa"));
  Loader loader({source(dataset, 6, Shuffle::none)}, Mixture(), plan_of(6, 1, 1), 0);
  const DocumentRanges first = loader.next().documents;
  for (int i = 0; i < 20; ++i) {
    EXPECT_NE(loader.next().documents, first);
  }
  EXPECT_EQ(*first, (Ranges{{0, 0, 4}, {0, 4, 2}}));
}

}  // namespace
}  // namespace trireme
