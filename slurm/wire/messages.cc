#include "slurm/wire/messages.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"

namespace trireme {
namespace {

using nlohmann::json;

constexpr std::size_t kMostText = 4096;
constexpr std::int64_t kMostPort = 65535;
constexpr std::int64_t kMostRank = (1 << 24) - 1;

constexpr std::array<std::string_view, 4> kOrders = {"ping", "clear", "partner", "bye"};

std::string dump(const json& object) {
  return object.dump(-1, ' ', false, json::error_handler_t::replace);
}

// Parses a message and checks its version and kind.
json parse(std::string_view text, std::string_view kind) {
  json object = parse_json(text);
  if (const std::int64_t version = count_field(object, "version"); version != kWireVersion) {
    throw DataError(fmt::format(
        "the other side speaks version {} of the launch's protocol, this program version {}: "
        "install the same trireme on all nodes",
        version, kWireVersion));
  }
  if (text_field(object, "kind") != kind) {
    throw DataError(fmt::format("expected a message of the kind '{}'", kind));
  }
  return object;
}

std::string short_text(const json& object, const char* name) {
  const std::string& text = text_field(object, name);
  if (text.size() > kMostText) {
    throw DataError(fmt::format("field '{}' is longer than {} bytes", name, kMostText));
  }
  return text;
}

double seconds_field(const json& object, const char* name) {
  const json& value = field(object, name);
  const double seconds = value.is_number() ? value.get<double>() : -1;
  if (!(seconds >= 0 && seconds < 1e9)) {
    throw DataError(fmt::format("field '{}' is not a number of seconds", name));
  }
  return seconds;
}

std::vector<std::string> texts_field(const json& object, const char* name) {
  std::vector<std::string> texts;
  for (const json& value : array_field(object, name)) {
    if (!value.is_string() || value.get_ref<const std::string&>().size() > kMostText) {
      throw DataError(
          fmt::format("field '{}' must hold strings of at most {} bytes", name, kMostText));
    }
    texts.push_back(value.get<std::string>());
  }
  return texts;
}

json json_of(const RankState& rank) {
  const Progress& p = rank.page;
  return {{"pid", p.pid},
          {"rank", p.rank},
          {"attempt", p.attempt},
          {"step", p.step},
          {"begun_at", p.begun_at},
          {"phase", name_of(p.phase)},
          {"deadline", p.deadline_seconds},
          {"changes", p.changes},
          {"created", p.created_ns},
          {"changed", p.changed_ns},
          {"first_step", p.first_step_ns},
          {"spent", p.spent_ns},
          {"exit_code", p.exit_code},
          {"age", rank.age},
          {"lived", rank.lived},
          {"gone", rank.gone},
          {"state", std::string(1, rank.state)}};
}

RankState rank_of(const json& object) {
  RankState rank;
  Progress& p = rank.page;
  p.pid = count_field(object, "pid", 1, 1 << 30);
  p.rank = static_cast<int>(count_field(object, "rank", 0, kMostRank));
  p.attempt = count_field(object, "attempt");
  p.step = count_field(object, "step");
  p.begun_at = count_field(object, "begun_at");
  const auto phase = parse_progress_phase(text_field(object, "phase"));
  const std::vector<std::int64_t> spent = counts_field(object, "spent");
  const std::string& state = text_field(object, "state");
  if (!phase || spent.size() != kProgressPhases || state.size() != 1) {
    throw DataError("the state of a rank has an unknown phase or format");
  }
  p.phase = *phase;
  p.deadline_seconds = seconds_field(object, "deadline");
  p.changes = count_field(object, "changes");
  p.created_ns = count_field(object, "created", 0, INT64_MAX);
  p.changed_ns = count_field(object, "changed", 0, INT64_MAX);
  p.first_step_ns = count_field(object, "first_step", 0, INT64_MAX);
  std::copy(spent.begin(), spent.end(), p.spent_ns.begin());
  p.exit_code = static_cast<int>(count_field(object, "exit_code", 0, 255));
  rank.age = seconds_field(object, "age");
  rank.lived = seconds_field(object, "lived");
  rank.gone = flag_field(object, "gone");
  rank.state = state.front();
  return rank;
}

}  // namespace

std::string to_json(const Challenge& message) {
  return dump({{"version", kWireVersion}, {"kind", "challenge"}, {"nonce", message.nonce}});
}

Challenge parse_challenge(std::string_view text) {
  return {short_text(parse(text, "challenge"), "nonce")};
}

std::string to_json(const Hello& message) {
  return dump({{"version", kWireVersion},
               {"kind", "hello"},
               {"role", message.role},
               {"node", message.node},
               {"nonce", message.nonce},
               {"proof", message.proof},
               {"pid", message.pid},
               {"port", message.port},
               {"addresses", message.addresses}});
}

Hello parse_hello(std::string_view text) {
  const json object = parse(text, "hello");
  return {.role = short_text(object, "role"),
          .node = short_text(object, "node"),
          .nonce = short_text(object, "nonce"),
          .proof = short_text(object, "proof"),
          .pid = count_field(object, "pid"),
          .port = static_cast<int>(count_field(object, "port", 0, kMostPort)),
          .addresses = texts_field(object, "addresses")};
}

std::string to_json(const Welcome& message) {
  return dump({{"version", kWireVersion}, {"kind", "welcome"}, {"proof", message.proof}});
}

Welcome parse_welcome(std::string_view text) {
  return {short_text(parse(text, "welcome"), "proof")};
}

std::string to_json(const AgentReport& message) {
  json ranks = json::array();
  for (const RankState& rank : message.ranks) {
    ranks.push_back(json_of(rank));
  }
  return dump({{"version", kWireVersion},
               {"kind", "report"},
               {"healthy", message.healthy},
               {"settled", message.settled},
               {"trouble", message.trouble.substr(0, kMostText)},
               {"oom_kills", message.oom_kills},
               {"cleared", message.cleared},
               {"memory_generation", message.memory_step.generation},
               {"memory_step", message.memory_step.step + 1},  // 0 if there is none
               {"ranks", ranks}});
}

AgentReport parse_agent_report(std::string_view text) {
  const json object = parse(text, "report");
  AgentReport report;
  report.healthy = flag_field(object, "healthy");
  report.settled = flag_field(object, "settled");
  report.trouble = short_text(object, "trouble");
  report.oom_kills = count_field(object, "oom_kills");
  report.cleared = count_field(object, "cleared");
  report.memory_step = {count_field(object, "memory_generation"),
                        count_field(object, "memory_step") - 1};
  for (const json& rank : array_field(object, "ranks")) {
    report.ranks.push_back(rank_of(rank));
  }
  return report;
}

std::string to_json(const Order& message) {
  return dump({{"version", kWireVersion},
               {"kind", "order"},
               {"order", kOrders.at(static_cast<std::size_t>(message.kind))},
               {"attempt", message.attempt},
               {"node", message.node},
               {"port", message.port},
               {"addresses", message.addresses}});
}

Order parse_order(std::string_view text) {
  const json object = parse(text, "order");
  const auto found = std::find(kOrders.begin(), kOrders.end(), text_field(object, "order"));
  if (found == kOrders.end()) {
    throw DataError("unknown order");
  }
  return {.kind = static_cast<Order::Kind>(found - kOrders.begin()),
          .attempt = count_field(object, "attempt"),
          .node = short_text(object, "node"),
          .port = static_cast<int>(count_field(object, "port", 0, kMostPort)),
          .addresses = texts_field(object, "addresses")};
}

}  // namespace trireme
