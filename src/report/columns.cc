#include "src/report/columns.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

constexpr std::size_t kMostLines = 10'000'000;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
// The first kMathematical are results of the training, which may have any size and sign. The others
// are measured, counted or computed from such.
constexpr std::array<std::string_view, 30> kFields = {"loss",
                                                      "loss_mean",
                                                      "cross_entropy",
                                                      "kl_divergence",
                                                      "val_loss",
                                                      "grad_norm",
                                                      "lr",
                                                      "loss_scale",
                                                      "tokens",
                                                      "tokens_per_s",
                                                      "step_ms",
                                                      "mfu",
                                                      "data_wait_ms",
                                                      "comm_exposed_ms",
                                                      "tensor_wait_ms",
                                                      "pipeline_wait_ms",
                                                      "checkpoint_stall_ms",
                                                      "memory_bytes",
                                                      "skipped_steps",
                                                      "cpu_joules_per_step",
                                                      "gpu_joules_per_step",
                                                      "cpu_joules_per_token",
                                                      "gpu_joules_per_token",
                                                      "cpu_watts",
                                                      "gpu_watts",
                                                      "cpu_joules_per_checkpoint",
                                                      "gpu_joules_per_checkpoint",
                                                      "co2_grams_per_step",
                                                      "price_per_step",
                                                      "time"};
constexpr std::ptrdiff_t kMathematical = 8;

// Objects within a line whose numbers are read as well, and the most fields read from them.
constexpr std::array<std::string_view, 2> kGroups = {"sources", "val_losses"};
constexpr std::size_t kMostGrouped = 2048;

// LineReader takes the numbers of one line from the parser's events, without building objects.
class LineReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  void begin() {
    values_.fill(kNone);
    step_ = kNone;
    depth_ = 0;
    field_ = kOther;
    is_object_ = false;
    device_.clear();
    grouped_.clear();
    path_ = {};
    impossible_ = 0;
  }

  // These hold the line after a successful parse.
  bool is_step() const { return is_object_ && std::isfinite(step_); }
  double step() const { return step_; }
  const std::array<double, kFields.size()>& values() const { return values_; }
  const std::string& device() const { return device_; }
  std::int64_t impossible() const { return impossible_; }
  // Returns the numbers in groups, as {"sources/web/loss", 2.5}.
  const std::vector<std::pair<std::string, double>>& grouped() const { return grouped_; }

  bool key(string_t& name) override {
    field_ = kOther;
    if (depth_ >= 1 && depth_ <= static_cast<int>(path_.size())) {
      path_.at(static_cast<std::size_t>(depth_ - 1)) = name;
    }
    if (depth_ == 1) {
      const auto found = std::find(kFields.begin(), kFields.end(), name);
      field_ = found != kFields.end() ? found - kFields.begin()
               : name == "step"       ? kStep
               : name == "device"     ? kDevice
                                      : kOther;
    }
    return true;
  }
  bool number_integer(number_integer_t value) override {
    return take(static_cast<double>(value), true);
  }
  bool number_unsigned(number_unsigned_t value) override {
    return take(static_cast<double>(value), true);
  }
  bool number_float(number_float_t value, const string_t& /*text*/) override {
    return take(value, false);
  }
  bool string(string_t& value) override {
    if (depth_ == 1 && field_ == kDevice) {
      device_ = value;
    }
    return true;
  }
  bool start_object(std::size_t /*count*/) override {
    is_object_ = is_object_ || depth_ == 0;
    return ++depth_ <= kMostJsonDepth;
  }
  bool start_array(std::size_t /*count*/) override { return ++depth_ <= kMostJsonDepth; }
  bool end_object() override { return --depth_ >= 0; }
  bool end_array() override { return --depth_ >= 0; }
  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool binary(binary_t& /*value*/) override { return true; }
  bool parse_error(std::size_t /*at*/, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    return false;
  }

 private:
  static constexpr std::ptrdiff_t kOther = -1;
  static constexpr std::ptrdiff_t kStep = -2;
  static constexpr std::ptrdiff_t kDevice = -3;

  bool take(double value, bool is_integer) {
    constexpr double kMostStep = 1e15;  // whole numbers up to here are exact
    if (depth_ != 1) {
      take_grouped(value);
      return true;
    }
    if (field_ >= kMathematical && !is_measured(value)) {
      ++impossible_;
    } else if (field_ >= 0) {
      values_.at(static_cast<std::size_t>(field_)) = value;
    } else if (field_ == kStep && is_integer && value >= 0 && value <= kMostStep) {
      step_ = value;
    }
    return true;
  }

  void take_grouped(double value) {
    const bool is_grouped = std::find(kGroups.begin(), kGroups.end(), path_[0]) != kGroups.end();
    if (!is_grouped || depth_ < 2 || depth_ > static_cast<int>(path_.size()) ||
        grouped_.size() >= kMostGrouped) {
      return;
    }
    std::string field = path_[0];
    for (int depth = 2; depth <= depth_; ++depth) {
      field += '/' + path_.at(static_cast<std::size_t>(depth - 1));
    }
    grouped_.emplace_back(std::move(field), value);
  }

  std::array<double, kFields.size()> values_{};
  std::array<std::string, 3> path_;  // the keys that lead to a value, from the outermost
  std::vector<std::pair<std::string, double>> grouped_;
  double step_ = kNone;
  std::string device_;
  std::int64_t impossible_ = 0;
  int depth_ = 0;
  std::ptrdiff_t field_ = kOther;
  bool is_object_ = false;
};

// Returns the places of a longest ascending sequence of the numbers (Fredman, 1975).
std::vector<std::size_t> longest_ascending(const std::vector<double>& numbers) {
  std::vector<std::size_t> last;  // of the sequence of each length that ends lowest
  std::vector<std::size_t> before(numbers.size());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto at = std::lower_bound(last.begin(), last.end(), numbers[i],
                                     [&](std::size_t j, double one) { return numbers[j] < one; });
    before[i] = at == last.begin() ? i : *(at - 1);
    if (at == last.end()) {
      last.push_back(i);
    } else {
      *at = i;
    }
  }
  std::vector<std::size_t> places(last.size());
  std::size_t i = last.empty() ? 0 : last.back();
  for (auto place = places.rbegin(); place != places.rend(); ++place, i = before[i]) {
    *place = i;
  }
  return places;
}

std::vector<double> at_places(const std::vector<double>& numbers,
                              const std::vector<std::size_t>& places) {
  std::vector<double> kept;
  kept.reserve(places.size());
  for (const std::size_t place : places) {
    kept.push_back(numbers[place]);
  }
  return kept;
}

}  // namespace

bool is_measured(double value) {
  constexpr double kMost = 1e18;  // as many bytes as no host has, and seconds as no run lasts
  return value >= 0 && value <= kMost;
}

// Leaves out as few lines as possible: one with an absurd step must not hide those behind it.
void RunColumns::keep_ascending() {
  const std::vector<std::size_t> places = longest_ascending(step);
  out_of_order = std::ssize(step) - std::ssize(places);
  step = at_places(step, places);
  none_ = at_places(none_, places);
  for (auto& [field, numbers] : fields) {
    numbers = at_places(numbers, places);
  }
}

const std::vector<double>& RunColumns::of(std::string_view field) const {
  const auto found = fields.find(field);
  return found == fields.end() ? none_ : found->second;
}

bool RunColumns::has(std::string_view field) const { return std::isfinite(last(field)); }

std::optional<std::size_t> RunColumns::place_of_last(std::string_view field) const {
  const std::vector<double>& all = of(field);
  const auto found =
      std::find_if(all.rbegin(), all.rend(), [](double each) { return std::isfinite(each); });
  return found == all.rend() ? std::nullopt
                             : std::optional(static_cast<std::size_t>(all.rend() - found - 1));
}

double RunColumns::last(std::string_view field) const {
  const std::optional<std::size_t> place = place_of_last(field);
  return place ? of(field)[*place] : kNone;
}

std::vector<double> RunColumns::step_counts() const {
  std::vector<double> counts;
  counts.reserve(step.size());
  for (std::size_t i = 0; i < step.size(); ++i) {
    counts.push_back(step[i] - (i == 0 ? 0 : step[i - 1]));
  }
  return counts;
}

std::vector<double> RunColumns::step_seconds() const {
  std::vector<double> seconds = step_counts();
  const std::vector<double>& ms = of("step_ms");
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    seconds[i] *= 1e-3 * ms[i];
  }
  return seconds;
}

std::vector<std::string> RunColumns::names_in(std::string_view group) const {
  std::vector<std::string> names;
  const std::string prefix = std::string(group) + "/";
  for (auto at = fields.lower_bound(prefix); at != fields.end() && at->first.starts_with(prefix);
       ++at) {
    const std::string rest = at->first.substr(prefix.size());
    const std::string name = rest.substr(0, rest.find('/'));
    if (names.empty() || names.back() != name) {
      names.push_back(name);
    }
  }
  return names;
}

RunColumns parse_columns(std::string_view text) {
  RunColumns columns;
  std::array<std::vector<double>, kFields.size()> values;
  LineReader reader;
  bool ascending = true;
  columns.damaged = use_lines(text, [&](std::string_view line) {
    reader.begin();
    if (columns.step.size() >= kMostLines ||
        !nlohmann::json::sax_parse(line.begin(), line.end(), &reader) || !reader.is_step()) {
      return false;
    }
    const bool again = !columns.empty() && reader.step() == columns.step.back();
    ascending = ascending && (columns.empty() || reader.step() >= columns.step.back());
    if (!again) {
      columns.step.push_back(reader.step());
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = reader.values().at(i);
      if (!again) {
        values.at(i).push_back(value);
      } else if (std::isfinite(value)) {  // an evaluation made up for by a later start
        values.at(i).back() = value;
      }
    }
    columns.impossible += reader.impossible();
    for (const auto& [field, value] : reader.grouped()) {
      if (columns.fields.size() < kMostGrouped || columns.fields.contains(field)) {
        std::vector<double>& numbers = columns.fields[field];
        numbers.resize(columns.step.size(), kNone);
        numbers.back() = value;
      }
    }
    columns.device = reader.device().empty() ? columns.device : reader.device();
    return true;
  });
  columns.none_.assign(columns.step.size(), kNone);
  for (auto& [field, numbers] : columns.fields) {
    numbers.resize(columns.step.size(), kNone);
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::any_of(values.at(i).begin(), values.at(i).end(),
                    [](double each) { return std::isfinite(each); })) {
      columns.fields.emplace(kFields.at(i), std::move(values.at(i)));
    }
  }
  if (!ascending) {
    columns.keep_ascending();
  }
  return columns;
}

}  // namespace trireme
