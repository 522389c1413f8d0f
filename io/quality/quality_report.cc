#include "io/quality/quality_report.h"

#include <algorithm>
#include <span>
#include <sstream>

#include "io/data/pack_plan.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kReportUnit = std::int64_t{64} << 20;
constexpr std::int64_t kReadTokensAtOnce = std::int64_t{1} << 20;

// Counts documents and seeks duplicates.
class ReportSink final : public TextSink {
 public:
  ReportSink(TextQuality& quality, DuplicateSearch& search) : counter_(quality), search_(search) {}

  void begin_document(const DocumentPlace& place) override {
    counter_.begin();
    search_.begin(place);
  }
  void take(std::string_view text) override {
    counter_.take(text);
    search_.take(text);
  }
  void end_document(bool /*is_whole*/) override {
    counter_.end();
    search_.end();
  }

 private:
  QualityCounter counter_;
  DuplicateSearch& search_;
};

// Adds what all ranks have counted, and seeks duplicates among their documents.
void finish(QualityReport& report, DuplicateSearch& search, const RankGroup& ranks) {
  TextQuality sum;
  for (const std::string& text : ranks.gather(report.quality.to_text())) {
    sum += TextQuality::from_text(text);
  }
  report.quality = sum;
  report.documents = report.has_texts ? sum.bytes.count() : sum.tokens.count();
  std::vector<DocumentPlace> equal = search.find_equal(ranks);
  report.equal = std::ssize(equal);
  if (report.has_texts) {
    const std::vector<DocumentPlace> near = search.find_near(ranks);
    equal.insert(equal.end(), near.begin(), near.end());
    std::ranges::sort(equal);
    equal.erase(std::unique(equal.begin(), equal.end()), equal.end());
    report.near = std::ssize(equal);
  }
}

void read_document(const Dataset& dataset, std::size_t shard, std::int64_t begin, std::int64_t end,
                   std::vector<std::int32_t>& tokens) {
  tokens.resize(static_cast<std::size_t>(end - begin));
  std::vector<std::byte> scratch;
  for (std::int64_t at = begin; at < end; at += kReadTokensAtOnce) {
    const TokenRun run{shard, at, std::min(kReadTokensAtOnce, end - at)};
    dataset.read(run,
                 std::span(tokens).subspan(static_cast<std::size_t>(at - begin),
                                           static_cast<std::size_t>(run.count)),
                 scratch);
  }
}

PackCounts sum_of(const PackCounts& mine, const RankGroup& ranks) {
  PackCounts sum;
  for (const std::string& text :
       ranks.gather(fmt::format("{} {} {} {}", mine.files, mine.binary_files, mine.empty_documents,
                                mine.skipped_members))) {
    PackCounts other;
    std::istringstream stream(text);
    stream >> other.files >> other.binary_files >> other.empty_documents >> other.skipped_members;
    sum += other;
  }
  return sum;
}

}  // namespace

QualityReport report_on_texts(const std::vector<InputFile>& files, const std::string& field,
                              const RankGroup& ranks, const PackProgress& progress) {
  QualityReport report;
  DuplicateSearch search(true, true);
  ReportSink sink(report.quality, search);
  const Selection all;
  report.inputs = sum_of(read_share({files, all, field}, plan_reading(files, kReportUnit), sink,
                                    ranks.rank, ranks.size, progress),
                         ranks);
  finish(report, search, ranks);
  return report;
}

QualityReport report_on_dataset(const Dataset& dataset, const Tokenizer* tokenizer,
                                const RankGroup& ranks, const PackProgress& progress) {
  QualityReport report;
  report.has_texts = tokenizer != nullptr;
  DuplicateSearch search(true, report.has_texts);
  ReportSink sink(report.quality, search);
  const DatasetManifest& manifest = dataset.manifest();
  std::vector<std::int32_t> tokens;
  std::int64_t done = 0;
  std::int64_t total = 0;
  const auto stride = static_cast<std::size_t>(ranks.size);
  for (auto i = static_cast<std::size_t>(ranks.rank); i < manifest.shards.size(); i += stride) {
    total += manifest.shards[i].n_tokens * manifest.token_bytes;
  }
  for (auto i = static_cast<std::size_t>(ranks.rank); i < manifest.shards.size(); i += stride) {
    const std::vector<std::int64_t> offsets = dataset.document_offsets(i);
    for (std::size_t d = 0; d + 1 < offsets.size(); ++d) {
      read_document(dataset, i, offsets[d], offsets[d + 1], tokens);
      report.quality.tokens.add(std::ssize(tokens));
      const DocumentPlace place = {static_cast<std::int64_t>(i), static_cast<std::int64_t>(d)};
      if (tokenizer != nullptr) {
        sink.begin_document(place);
        sink.take(tokenizer->decode(tokens));
        sink.end_document(true);
      } else {
        search.begin(place);
        search.take(
            {reinterpret_cast<const char*>(tokens.data()), tokens.size() * sizeof tokens[0]});
        search.end();
      }
      done += std::ssize(tokens) * manifest.token_bytes;
      if (progress && (d % 1024 == 0 || d + 2 == offsets.size())) {
        progress(done, total);
      }
    }
  }
  finish(report, search, ranks);
  return report;
}

}  // namespace trireme
