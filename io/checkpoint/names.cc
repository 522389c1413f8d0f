#include "io/checkpoint/names.h"

#include <array>
#include <charconv>
#include <system_error>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 3> kTransientPrefixes = {".tmp-", ".replaced-", ".trash-"};

std::optional<std::int64_t> parse_number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text.front() == '-' || code != std::errc() ||
      end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

}  // namespace

std::string step_folder_name(std::int64_t step) { return fmt::format("step-{:08}", step); }

std::string shard_file_name(std::int64_t number) {
  return fmt::format("shard-{:05}.safetensors", number);
}

std::optional<std::int64_t> parse_step_folder_name(std::string_view name) {
  if (!name.starts_with("step-")) {
    return std::nullopt;
  }
  const auto step = parse_number(name.substr(5));
  return step && step_folder_name(*step) == name ? step : std::nullopt;
}

std::optional<std::int64_t> parse_shard_file_name(std::string_view name) {
  if (!name.starts_with("shard-") || !name.ends_with(".safetensors")) {
    return std::nullopt;
  }
  const auto number = parse_number(name.substr(6, name.find('.') - 6));
  return number && shard_file_name(*number) == name ? number : std::nullopt;
}

std::string TransientName::to_string() const {
  return fmt::format("{}{}-{}", kTransientPrefixes[static_cast<std::size_t>(kind)], step,
                     generation);
}

std::optional<TransientName> parse_transient_name(std::string_view name) {
  for (std::size_t i = 0; i < kTransientPrefixes.size(); ++i) {
    const std::string_view prefix = kTransientPrefixes[i];
    if (!name.starts_with(prefix)) {
      continue;
    }
    const std::string_view rest = name.substr(prefix.size());
    const std::size_t dash = rest.find('-');
    const auto step = parse_number(rest.substr(0, dash));
    const auto generation =
        dash == std::string_view::npos ? std::nullopt : parse_number(rest.substr(dash + 1));
    if (step && generation) {
      return TransientName{static_cast<TransientName::Kind>(i), *step, *generation};
    }
  }
  return std::nullopt;
}

void remove_tree(const std::filesystem::path& path) {
  std::error_code code;
  std::filesystem::remove_all(path, code);
  if (code) {
    throw_errno(code.value(), "remove", path);
  }
}

}  // namespace trireme
