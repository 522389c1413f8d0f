#include "src/plan/plan_layout.h"

#include <charconv>
#include <set>

#include <fmt/format.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostDegree = 1'000'000;

std::int64_t parse_degree(std::string_view key, std::string_view value, std::int64_t least) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < least ||
      number > kMostDegree) {
    throw ConfigError(fmt::format("layout: {}={}: expected an integer from {} to {}", key, value,
                                  least, kMostDegree));
  }
  return number;
}

PlanRecompute parse_recompute(std::string_view word) {
  for (const auto each : {PlanRecompute::none, PlanRecompute::selective, PlanRecompute::full}) {
    if (name_of(each) == word) {
      return each;
    }
  }
  throw ConfigError(fmt::format("layout: recompute={}: expected none, selective or full", word));
}

void set_part(std::string_view key, std::string_view value, PlanLayout& layout) {
  if (key == "dp") {
    layout.dp = parse_degree(key, value, 1);
  } else if (key == "tp") {
    layout.tp = parse_degree(key, value, 1);
  } else if (key == "pp") {
    layout.pp = parse_degree(key, value, 1);
  } else if (key == "v") {
    layout.virtual_stages = parse_degree(key, value, 1);
  } else if (key == "micro_batch") {
    layout.micro_batch = parse_degree(key, value, 1);
  } else if (key == "zero") {
    layout.zero = static_cast<int>(parse_degree(key, value, 0));
    if (layout.zero > 3) {
      throw ConfigError(fmt::format("layout: zero={}: expected 0 to 3", value));
    }
  } else if (key == "recompute") {
    layout.recompute = parse_recompute(value);
  } else if (key == "schedule") {
    layout.schedule = parse_pipeline_schedule(value);
  } else {
    throw ConfigError(fmt::format(
        "layout: unknown key '{}'; known are dp, tp, pp, v, micro_batch, zero, recompute and "
        "schedule",
        key));
  }
}

}  // namespace

std::string_view name_of(PlanRecompute recompute) {
  return recompute == PlanRecompute::none        ? "none"
         : recompute == PlanRecompute::selective ? "selective"
                                                 : "full";
}

std::string layout_text(const PlanLayout& layout) {
  std::string text = fmt::format("dp {} tp {} pp {}", layout.dp, layout.tp, layout.pp);
  if (layout.virtual_stages > 1) {
    text += fmt::format(" v {}", layout.virtual_stages);
  }
  text += fmt::format(" micro-batch {} zero {} recompute {}", layout.micro_batch, layout.zero,
                      name_of(layout.recompute));
  if (layout.pp > 1) {
    text += fmt::format(" {}", name_of(layout.schedule));
  }
  return text;
}

PlanLayout parse_layout(std::string_view text, const PlanLayout& base, std::int64_t global_batch) {
  PlanLayout layout = base;
  std::set<std::string_view> given;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string_view::npos) {
      throw ConfigError(fmt::format("layout: '{}' is not KEY=VALUE, as in dp=8,tp=4,pp=2", part));
    }
    if (!given.insert(part.substr(0, equals)).second) {
      throw ConfigError(fmt::format("layout: '{}' is given twice", part.substr(0, equals)));
    }
    set_part(part.substr(0, equals), part.substr(equals + 1), layout);
  }
  const std::int64_t unit = layout.dp * layout.micro_batch;
  if (global_batch % unit != 0) {
    throw ConfigError(fmt::format(
        "layout: train.global_batch {} is not a multiple of dp {} x micro_batch {} = {}",
        global_batch, layout.dp, layout.micro_batch, unit));
  }
  layout.micro_batches = global_batch / unit;
  return layout;
}

}  // namespace trireme
