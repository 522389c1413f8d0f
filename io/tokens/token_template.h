// Puts special tokens around a text: the "post_processor" of tokenizer.json. Immutable.
#pragma once

#include <cstdint>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace trireme {

class TokenTemplate {
 public:
  // Reads TemplateProcessing, ByteLevel (which changes no ids) and Sequence; null adds nothing.
  // Throws DataError for others.
  explicit TokenTemplate(const nlohmann::json& value);

  const std::vector<std::int32_t>& before() const { return before_; }
  const std::vector<std::int32_t>& after() const { return after_; }

 private:
  void add(const nlohmann::json& value);

  std::vector<std::int32_t> before_;
  std::vector<std::int32_t> after_;
};

}  // namespace trireme
