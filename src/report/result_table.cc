#include "src/report/result_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"
#include "src/report/line_figure.h"

namespace trireme {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostTableRows = 200;

// Returns large rates with a prefix: "1.72 GB/s" for bytes_per_s.
std::string text_with_unit(const std::string& name, const Json& value) {
  constexpr std::array kUnits = {
      std::pair<std::string_view, std::string_view>{"bytes_per_s", "B/s"},
      std::pair<std::string_view, std::string_view>{"flops_per_s", "FLOP/s"}};
  for (const auto& [end, unit] : kUnits) {
    if (value.is_number() && name.ends_with(end)) {
      return format_rate(value.get<double>(), unit);
    }
  }
  return cell_text(value);
}

// Returns the keys whose values differ between results; with one result, all of them.
std::vector<std::string> telling_keys(const Results& results, const char* section) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : results.front()->at(section).items()) {
    const bool differs =
        std::any_of(results.begin(), results.end(), [&, name = key, first = value](auto* each) {
          const auto found = each->at(section).find(name);
          return found == each->at(section).end() || *found != first;
        });
    if (differs || results.size() == 1) {
      keys.push_back(key);
    }
  }
  return keys;
}

void add_cells(std::vector<std::string>& row, const Json& values,
               const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    row.push_back(values.contains(key) ? text_with_unit(key, values.at(key)) : "-");
  }
}

}  // namespace

DocTable results_table(const std::string& name, const Results& results) {
  const std::vector<std::string> params = telling_keys(results, "params");
  std::vector<std::string> metrics;
  for (const Json* const each : results) {
    for (const auto& [key, value] : each->at("metrics").items()) {
      if (std::find(metrics.begin(), metrics.end(), key) == metrics.end()) {
        metrics.push_back(key);
      }
    }
  }
  DocTable table{fmt::format("Results {}", name), params, {}};
  table.head.insert(table.head.end(), metrics.begin(), metrics.end());
  if (params.empty()) {
    table.head.insert(table.head.begin(), "result");
  }
  for (const Json* const each : results) {
    if (table.rows.size() == kMostTableRows) {
      table.caption += fmt::format(" (the first {} of {})", kMostTableRows, results.size());
      break;
    }
    std::vector<std::string> row;
    if (params.empty()) {
      row.push_back(name);
    }
    add_cells(row, each->at("params"), params);
    add_cells(row, each->at("metrics"), metrics);
    table.rows.push_back(std::move(row));
  }
  return table;
}

std::string cell_text(const Json& value) {
  if (value.is_number_float()) {
    return number_text(value.get<double>());
  }
  if (value.is_array() && !value.empty() && value.front().is_object()) {
    return std::to_string(value.size());  // too much for a cell: only how many there are
  }
  if (value.is_array()) {
    std::string text;
    for (const Json& each : value) {
      text += (text.empty() ? "" : ", ") + cell_text(each);
    }
    return text;
  }
  return value.is_string() ? value.get<std::string>() : value.is_null() ? "-" : value.dump();
}

std::string equal_params(const Results& results) {
  const std::vector<std::string> telling = telling_keys(results, "params");
  std::string text;
  for (const auto& [key, value] : results.front()->at("params").items()) {
    if (std::find(telling.begin(), telling.end(), key) == telling.end()) {
      text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", key, cell_text(value));
    }
  }
  return text;
}

void check_samples(const Json& result) {
  if (!result.contains("samples")) {
    return;
  }
  for (const auto& [name, samples] : object_field(result, "samples").items()) {
    if (!samples.is_object()) {
      throw DataError(fmt::format("the samples of {} are no object", name));
    }
    const Json& values = array_field(samples, "values");
    const bool sound = std::all_of(values.begin(), values.end(), [](const Json& value) {
      return value.is_number() || value.is_null();
    });
    if (!sound) {
      throw DataError(fmt::format("a value of {} is neither a number nor null", name));
    }
  }
}

}  // namespace trireme
