#include "slurm/agent/copy_messages.h"

#include <charconv>
#include <optional>

#include <nlohmann/json.hpp>

#include "slurm/policy/nodes.h"
#include "src/base/digest.h"
#include "src/base/json_fields.h"
#include "src/base/keys_name.h"
#include "src/base/overloaded.h"

namespace trireme {
namespace {

using nlohmann::json;

std::string dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Removes the number at the front of `text` and returns it; nullopt if it has fewer digits than
// `least_digits`.
std::optional<std::int64_t> take_number(std::string_view& text, std::size_t least_digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc() || digits < least_digits || digits > 18 || text.front() == '-') {
    return std::nullopt;
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, std::string_view word) {
  const bool there = text.starts_with(word);
  text.remove_prefix(there ? word.size() : 0);
  return there;
}

std::optional<std::pair<std::int64_t, std::int64_t>> parse_step(std::string_view name) {
  if (!take(name, "step-")) {
    return std::nullopt;
  }
  const auto step = take_number(name, 8);
  const bool joined = step && take(name, "-g");
  const auto generation = joined ? take_number(name, 6) : std::nullopt;
  return generation && name.empty() ? std::optional(std::pair(*generation, *step)) : std::nullopt;
}

}  // namespace

std::string to_json(const CopyMessage& message) {
  return std::visit(
      Overloaded{[](const CopyBegin& m) {
                   return dump({{"copy", "begin"}, {"node", m.node}, {"step", m.step}});
                 },
                 [](const CopyFile& m) {
                   return dump({{"copy", "file"},
                                {"name", m.name},
                                {"bytes", m.bytes},
                                {"xxh3", hex64(m.digest)}});
                 },
                 [](const CopyEnd&) {
                   return dump({{"copy", "end"}});
                 },
                 [](const CopyDone& m) {
                   return dump({{"copy", "done"}, {"whole", m.whole}, {"why", m.why}});
                 }},
      message);
}

CopyMessage parse_copy_message(std::string_view text) {
  const json object = parse_json(text);
  const std::string& kind = text_field(object, "copy");
  if (kind == "begin") {
    CopyBegin begin{text_field(object, "node"), text_field(object, "step")};
    if (!is_host_name(begin.node) || begin.node.starts_with('.') ||
        !is_memory_step_name(begin.step)) {
      throw DataError("the name of a node or step in a copied checkpoint is not valid");
    }
    return begin;
  }
  if (kind == "file") {
    CopyFile file{text_field(object, "name"), count_field(object, "bytes"),
                  parse_hex64(text_field(object, "xxh3"))};
    if (!is_step_file_name(file.name)) {
      throw DataError("the name of a file in a copied checkpoint is not valid");
    }
    return file;
  }
  if (kind == "end") {
    return CopyEnd{};
  }
  if (kind == "done") {
    return CopyDone{flag_field(object, "whole"), text_field(object, "why")};
  }
  throw DataError("unknown message while copying a checkpoint");
}

bool is_memory_step_name(std::string_view name) { return parse_step(name).has_value(); }

bool is_step_file_name(std::string_view name) {
  if (name == "manifest.json" || name == kKeysFileName) {
    return true;
  }
  return take(name, "shard-") && take_number(name, 5) && name == ".safetensors";
}

std::pair<std::int64_t, std::int64_t> age_of(std::string_view step_name) {
  return parse_step(step_name).value_or(std::pair<std::int64_t, std::int64_t>(-1, -1));
}

}  // namespace trireme
