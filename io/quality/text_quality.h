// TextQuality is what a report counts of documents: lengths, letters by script, and texts that look
// like personal data. A value; those of several ranks are added.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "io/data/text_reading.h"
#include "io/quality/length_counts.h"
#include "io/quality/personal_patterns.h"
#include "io/quality/scripts.h"

namespace trireme {

using ScriptCounts = std::array<std::int64_t, kScriptNames.size()>;

struct TextQuality {
  LengthCounts bytes;
  LengthCounts characters;
  LengthCounts tokens;        // of datasets
  std::int64_t not_utf8 = 0;  // documents
  ScriptCounts letters{};
  // Documents by the script of most of their letters; those without letters are counted nowhere.
  ScriptCounts documents{};
  PatternCounts patterns{};
  PatternCounts documents_with{};

  TextQuality& operator+=(const TextQuality& other);
  // Convert to and from JSON, for sending.
  std::string to_text() const;
  static TextQuality from_text(std::string_view text);
};

// QualityCounter adds documents to a TextQuality, part by part. For one thread.
class QualityCounter {
 public:
  explicit QualityCounter(TextQuality& to) : to_(to) {}

  void begin();
  void take(std::string_view part);
  void end();

 private:
  TextQuality& to_;
  std::int64_t bytes_ = 0;
  std::int64_t characters_ = 0;
  bool is_utf8_ = true;
  ScriptCounts letters_{};
  PatternCounts patterns_{};
};

}  // namespace trireme
