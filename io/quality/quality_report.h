// Reports on the quality of texts, or of the texts of a dataset. All ranks call these functions
// together, share the work, and get the same report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "io/data/dataset.h"
#include "io/data/duplicates.h"
#include "io/data/tokenizer.h"
#include "io/quality/text_quality.h"

namespace trireme {

struct QualityReport {
  TextQuality quality;
  std::int64_t documents = 0;
  PackCounts inputs;  // of texts
  // Documents that repeat an earlier one: with equal texts, and with equal or nearly equal ones.
  std::int64_t equal = 0;
  std::optional<std::int64_t> near;
  bool has_texts =
      true;  // false: of a dataset whose tokenizer is unknown, so that tokens are counted
};

// Throws what read_texts() throws.
QualityReport report_on_texts(const std::vector<InputFile>& files, const std::string& field,
                              const RankGroup& ranks, const PackProgress& progress);

// tokenizer: of the dataset; null if it is unknown. The parts of a document that was divided
// between shards count as documents. Throws DataError for damage.
QualityReport report_on_dataset(const Dataset& dataset, const Tokenizer* tokenizer,
                                const RankGroup& ranks, const PackProgress& progress);

}  // namespace trireme
