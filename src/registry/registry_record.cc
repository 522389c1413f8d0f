#include "src/registry/registry_record.h"

#include <cmath>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::int64_t kRecordSchema = 1;
constexpr std::int64_t kMostResultBytes = std::int64_t{16} << 20;

// Adds every number of the object and of the objects in it, by the names of the fields.
void add_figures(const json& object, const std::string& prefix,
                 std::map<std::string, double>& figures) {
  for (const auto& [name, value] : object.items()) {
    const std::string whole = prefix + name;
    if (value.is_object()) {
      add_figures(value, whole + ".", figures);
    } else if (value.is_number() && std::isfinite(value.get<double>())) {
      figures[whole] = value.get<double>();
    }
  }
}

void put_result(const EvaluationResult& result, ordered_json& to) {
  to["figures"] = result.figures;
  if (result.gates_met) {
    to["gates_met"] = *result.gates_met;
  }
  if (!result.weights.empty()) {
    to["weights"] = result.weights;
  }
}

void put_origin(const RecordOrigin& origin, ordered_json& to) {
  to["time"] = origin.time;
  to["user"] = origin.user;
  to["host"] = origin.host;
}

EvaluationResult result_in(const json& record) {
  EvaluationResult result;
  for (const auto& [name, value] : object_field(record, "figures").items()) {
    if (!value.is_number()) {
      throw DataError(fmt::format("the figure {} is no number", printable(name)));
    }
    result.figures[name] = value.get<double>();
  }
  if (record.contains("gates_met")) {
    result.gates_met = flag_field(record, "gates_met");
  }
  if (record.contains("weights")) {
    result.weights = text_field(record, "weights");
  }
  return result;
}

RecordOrigin origin_in(const json& record) {
  return {text_field(record, "time"), text_field(record, "user"), text_field(record, "host")};
}

std::string text_of(const ordered_json& record) {
  // Names of users, hosts and paths are bytes, and may be no UTF-8.
  std::string text = record.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  if (static_cast<std::int64_t>(text.size()) > kMostRecordBytes) {
    throw ConfigError(fmt::format("a record of the registry has at most {} bytes, not {}",
                                  kMostRecordBytes, text.size()));
  }
  return text;
}

// What is asked of a record before its fields are read.
struct Expected {
  const char* record;  // "version"
  const char* number;  // the field with its number
  const std::string& model;
  std::int64_t value;
};

json parsed(std::string_view text, const Expected& expected) {
  json record = parse_json(text);
  const std::int64_t schema = count_field(record, "schema", 1);
  if (schema != kRecordSchema) {
    throw DataError(fmt::format("it has schema {}; this program reads {}", schema, kRecordSchema));
  }
  if (text_field(record, "record") != expected.record ||
      text_field(record, "model") != expected.model ||
      count_field(record, expected.number, 1, kMostRecordNumber) != expected.value) {
    throw DataError(fmt::format("it is not the record of {} {} of the model {}", expected.record,
                                expected.value, expected.model));
  }
  return record;
}

template <class Work>
auto naming(const std::string& origin, Work work) {
  try {
    return work();
  } catch (const DataError& error) {
    throw data_error_in(origin, error);
  }
}

std::string digest_field(const json& record, const char* name = "sha256") {
  const std::string& text = text_field(record, name);
  if (text.size() != 64 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw DataError(fmt::format("{} is not 64 hexadecimal digits", name));
  }
  return text;
}

std::string name_field(const json& record, const char* name) {
  const std::string& text = text_field(record, name);
  if (!is_registry_name(text)) {
    throw DataError(fmt::format("{} is no name: '{}'", name, printable(text)));
  }
  return text;
}

ModelKind kind_in(const json& record) {
  const std::string& word = text_field(record, "kind");
  for (const ModelKind kind : {ModelKind::checkpoint, ModelKind::exported}) {
    if (word == kind_word(kind)) {
      return kind;
    }
  }
  throw DataError(fmt::format("unknown kind '{}'", printable(word)));
}

VersionRecord version_in(const json& record) {
  VersionRecord result;
  result.model = text_field(record, "model");
  result.version = count_field(record, "version", 1, kMostRecordNumber);
  result.kind = kind_in(record);
  result.path = text_field(record, "path");
  if (!result.path.is_absolute()) {
    throw DataError("path does not begin at the root");
  }
  result.sha256 = digest_field(record);
  if (record.contains("step")) {
    result.step = count_field(record, "step");
  }
  result.label = text_field(record, "label");
  result.note = text_field(record, "note");
  result.result = result_in(record);
  result.origin = origin_in(record);
  return result;
}

ChangeRecord change_in(const json& record) {
  ChangeRecord result;
  result.model = text_field(record, "model");
  result.number = count_field(record, "change", 1, kMostRecordNumber);
  result.stage = name_field(record, "stage");
  result.version = count_field(record, "version", 1, kMostRecordNumber);
  if (record.contains("sha256")) {
    result.sha256 = digest_field(record);
  }
  result.despite_gates = record.contains("despite_gates") && flag_field(record, "despite_gates");
  const std::string& action = text_field(record, "action");
  if (action != "promote" && action != "rollback") {
    throw DataError(fmt::format("unknown action '{}'", printable(action)));
  }
  result.is_rollback = action == "rollback";
  result.reason = text_field(record, "reason");
  result.result = result_in(record);
  result.origin = origin_in(record);
  return result;
}

}  // namespace

std::string_view kind_word(ModelKind kind) {
  return kind == ModelKind::checkpoint ? "checkpoint" : "exported";
}

bool is_registry_name(std::string_view name) {
  const auto is_alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
  };
  if (name.empty() || name.size() > 64 || !is_alphanumeric(name[0])) {
    return false;
  }
  for (const char c : name) {
    if (!is_alphanumeric(c) && c != '.' && c != '_' && c != '-') {
      return false;
    }
  }
  return true;
}

void check_registry_name(std::string_view what, std::string_view name) {
  if (!is_registry_name(name)) {
    throw ConfigError(
        fmt::format("{} '{}': a name has 1 to 64 lower-case letters, digits, '.', "
                    "'_' and '-', and begins with a letter or digit",
                    what, printable(name)));
  }
}

std::string record_text(const VersionRecord& record) {
  ordered_json to = {{"schema", kRecordSchema},        {"record", "version"},
                     {"model", record.model},          {"version", record.version},
                     {"kind", kind_word(record.kind)}, {"path", record.path.string()},
                     {"sha256", record.sha256}};
  if (record.step >= 0) {
    to["step"] = record.step;
  }
  to["label"] = record.label;
  to["note"] = record.note;
  put_result(record.result, to);
  put_origin(record.origin, to);
  return text_of(to);
}

std::string record_text(const ChangeRecord& record) {
  ordered_json to = {{"schema", kRecordSchema}, {"record", "change"},
                     {"model", record.model},   {"change", record.number},
                     {"stage", record.stage},   {"version", record.version}};
  if (!record.sha256.empty()) {
    to["sha256"] = record.sha256;
  }
  to["action"] = record.is_rollback ? "rollback" : "promote";
  to["reason"] = record.reason;
  if (record.despite_gates) {
    to["despite_gates"] = true;
  }
  put_result(record.result, to);
  put_origin(record.origin, to);
  return text_of(to);
}

VersionRecord parse_version(std::string_view text, const std::string& model, std::int64_t version,
                            const std::string& origin) {
  return naming(origin, [&] {
    return version_in(parsed(text, {"version", "version", model, version}));
  });
}

ChangeRecord parse_change(std::string_view text, const std::string& model, std::int64_t number,
                          const std::string& origin) {
  return naming(origin, [&] {
    return change_in(parsed(text, {"change", "change", model, number}));
  });
}

EvaluationResult read_evaluation(const std::filesystem::path& file, std::int64_t& step) {
  const std::string text = read_file(file, kMostResultBytes);
  return naming(file.string(), [&] {
    json record = parse_json(text);
    step = count_field(record, "step");
    EvaluationResult result;
    if (record.contains("gates_met")) {
      result.gates_met = flag_field(record, "gates_met");
    }
    if (record.contains("manifest_sha256")) {
      result.manifest_sha256 = digest_field(record, "manifest_sha256");
    }
    if (record.contains("weights")) {
      result.weights = text_field(record, "weights");
    }
    for (const char* const name : {"schema", "step", "gates", "data", "task_sequence"}) {
      record.erase(name);
    }
    add_figures(record, "", result.figures);
    return result;
  });
}

}  // namespace trireme
