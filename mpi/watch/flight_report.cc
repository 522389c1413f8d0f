#include "mpi/watch/flight_report.h"

#include <limits>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"
#include "src/base/json_number.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostRanks = std::numeric_limits<int>::max();

std::string message_text(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Numbers of operations are -1 here and null in JSON if there is none.
json number_or_null(std::int64_t number) { return number < 0 ? json() : json(number); }

std::int64_t number_in(const json& object, const char* name) {
  return field(object, name).is_null() ? -1 : count_field(object, name, 0, kMost);
}

json json_of(const std::optional<OperationLabel>& label) {
  if (!label) {
    return nullptr;
  }
  return {{"kind", static_cast<int>(label->kind)},
          {"dtype", static_cast<int>(label->dtype)},
          {"order", static_cast<int>(label->order)},
          {"op", static_cast<int>(label->op)},
          {"root", label->root},
          {"number", label->number},
          {"bytes", label->bytes}};
}

std::optional<OperationLabel> label_in(const json& object, const char* name) {
  if (field(object, name).is_null()) {
    return std::nullopt;
  }
  const json& from = object_field(object, name);
  OperationLabel label;
  label.kind = static_cast<OperationKind>(
      count_field(from, "kind", 0, static_cast<int>(OperationKind::recv)));
  label.dtype = static_cast<DType>(count_field(from, "dtype", 0, static_cast<int>(DType::u32)));
  label.order =
      static_cast<SumOrder>(count_field(from, "order", 0, static_cast<int>(SumOrder::any)));
  label.op = static_cast<ReduceOp>(count_field(from, "op", 0, static_cast<int>(ReduceOp::min)));
  label.root = static_cast<std::int32_t>(count_field(from, "root", 0, kMostRanks));
  label.number = count_field(from, "number", 0, kMost);
  label.bytes = count_field(from, "bytes", 0, kMost);
  return label;
}

// Reads 64 bits as hexadecimal text, because JSON numbers need not hold all of them.
std::uint64_t bits_in(const json& object, const char* name) {
  const std::string& text = text_field(object, name);
  if (text.size() != 16 || text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw DataError(fmt::format("\"{}\" is not 16 hexadecimal digits", name));
  }
  return std::stoull(text, nullptr, 16);
}

}  // namespace

std::string to_json(const FlightQuestion& question) {
  return message_text({{"asker", question.asker},
                       {"group", fmt::format("{:016x}", question.group)},
                       {"number", number_or_null(question.number)},
                       {"why", question.why}});
}

FlightQuestion parse_flight_question(std::string_view text) {
  const json object = parse_json(text);
  FlightQuestion question;
  question.asker = static_cast<int>(count_field(object, "asker", 0, kMostRanks));
  question.group = bits_in(object, "group");
  question.number = number_in(object, "number");
  question.why = text_field(object, "why");
  return question;
}

std::string to_json(const FlightReport& report) {
  return message_text({{"rank", report.rank},
                       {"host", report.host},
                       {"phase", report.phase},
                       {"phase_seconds", report.phase_seconds},
                       {"knows_group", report.knows_group},
                       {"left_group", report.left_group},
                       {"entered", number_or_null(report.entered)},
                       {"last", json_of(report.last)},
                       {"finished", number_or_null(report.finished)},
                       {"overdue", json_of(report.overdue)},
                       {"waiting", report.waiting}});
}

FlightReport parse_flight_report(std::string_view text) {
  const json object = parse_json(text);
  FlightReport report;
  report.rank = static_cast<int>(count_field(object, "rank", 0, kMostRanks));
  report.host = text_field(object, "host");
  report.phase = text_field(object, "phase");
  if (!field(object, "phase_seconds").is_number()) {
    throw DataError("\"phase_seconds\" is not a number");
  }
  report.phase_seconds = number_field(object, "phase_seconds");
  report.knows_group = flag_field(object, "knows_group");
  report.left_group = flag_field(object, "left_group");
  report.entered = number_in(object, "entered");
  report.last = label_in(object, "last");
  report.finished = number_in(object, "finished");
  report.overdue = label_in(object, "overdue");
  for (const json& each : array_field(object, "waiting")) {
    if (!each.is_string()) {
      throw DataError("\"waiting\" does not hold strings");
    }
    report.waiting.push_back(each.get<std::string>());
  }
  return report;
}

}  // namespace trireme
