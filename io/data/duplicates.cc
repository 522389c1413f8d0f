#include "io/data/duplicates.h"

#include <algorithm>
#include <cstring>
#include <tuple>
#include <type_traits>

#include "io/data/pack_plan.h"

namespace trireme {
namespace {

// What a rank sends at a time, so that the ranks' messages together fit into memory.
constexpr std::size_t kSentRecords = std::size_t{1} << 17;
constexpr std::int64_t kUnitBytes = std::int64_t{64} << 20;

// Calls take(record) for the records of all ranks. Collective.
template <class Record, class Take>
void exchange(const std::vector<Record>& mine, const RankGroup& ranks, Take take) {
  static_assert(std::is_trivially_copyable_v<Record>);
  for (std::size_t at = 0;;) {
    const std::size_t some = std::min(kSentRecords, mine.size() - at);
    const std::string sent(reinterpret_cast<const char*>(mine.data() + at), some * sizeof(Record));
    at += some;
    bool has_ended = true;
    for (const std::string& got : ranks.gather(sent)) {
      has_ended = has_ended && got.empty();
      for (std::size_t i = 0; i < got.size(); i += sizeof(Record)) {
        Record record;
        std::memcpy(&record, got.data() + i, sizeof record);
        take(record);
      }
    }
    if (has_ended) {
      return;
    }
  }
}

void sort_once(std::vector<DocumentPlace>& places) {
  std::ranges::sort(places);
  places.erase(std::unique(places.begin(), places.end()), places.end());
}

// Gives the texts of documents to a search.
class SearchSink final : public TextSink {
 public:
  explicit SearchSink(DuplicateSearch& search) : search_(search) {}
  void begin_document(const DocumentPlace& place) override { search_.begin(place); }
  void take(std::string_view text) override { search_.take(text); }
  void end_document(bool /*is_whole*/) override { search_.end(); }

 private:
  DuplicateSearch& search_;
};

}  // namespace

std::vector<DocumentPlace> find_repeated(std::vector<KeyedDocument> mine, const RankGroup& ranks) {
  std::vector<KeyedDocument> part;
  const auto size = static_cast<std::uint64_t>(ranks.size);
  exchange(mine, ranks, [&](const KeyedDocument& document) {
    if (document.key.low % size == static_cast<std::uint64_t>(ranks.rank)) {
      part.push_back(document);
    }
  });
  mine = {};
  std::ranges::sort(part, [](const KeyedDocument& a, const KeyedDocument& b) {
    return std::tie(a.key, a.place) < std::tie(b.key, b.place);
  });
  std::vector<DocumentPlace> later;
  for (std::size_t i = 1; i < part.size(); ++i) {
    if (part[i].key == part[i - 1].key) {
      later.push_back(part[i].place);
    }
  }
  std::vector<DocumentPlace> all;
  exchange(later, ranks, [&](const DocumentPlace& place) { all.push_back(place); });
  sort_once(all);
  return all;
}

void DuplicateSearch::begin(const DocumentPlace& place) {
  place_ = place;
  equality_ = {};
  near_ = {};
}

void DuplicateSearch::take(std::string_view part) {
  if (seeks_equal_) {
    equality_.add(part);
  }
  if (seeks_near_) {
    near_.add(part);
  }
}

void DuplicateSearch::end() {
  if (seeks_equal_) {
    keys_.front().push_back({equality_.finish(), place_});
  }
  if (seeks_near_) {
    const auto bands = near_.finish();
    for (std::size_t band = 0; band < bands.size(); ++band) {
      keys_[1 + band].push_back({bands[band], place_});
    }
  }
}

std::vector<DocumentPlace> DuplicateSearch::find_equal(const RankGroup& ranks) {
  return find_repeated(std::move(keys_.front()), ranks);
}

std::vector<DocumentPlace> DuplicateSearch::find_near(const RankGroup& ranks) {
  std::vector<DocumentPlace> all;
  for (std::size_t band = 1; band < keys_.size(); ++band) {
    const std::vector<DocumentPlace> found = find_repeated(std::move(keys_[band]), ranks);
    all.insert(all.end(), found.begin(), found.end());
    sort_once(all);
  }
  return all;
}

std::vector<DocumentPlace> find_duplicates(const TextInputs& inputs, Deduplication deduplication,
                                           const RankGroup& ranks, const PackProgress& progress) {
  const bool is_exact = deduplication == Deduplication::exact;
  DuplicateSearch search(is_exact, !is_exact);
  SearchSink sink(search);
  read_share(inputs, plan_reading(inputs.files, kUnitBytes), sink, ranks.rank, ranks.size,
             progress);
  return is_exact ? search.find_equal(ranks) : search.find_near(ranks);
}

}  // namespace trireme
