#include "mpi/links/link_book.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/units.h"

namespace trireme {
namespace {

int rank_field(const nlohmann::json& object, const char* name) {
  return static_cast<int>(count_field(object, name, 0, std::numeric_limits<int>::max()));
}

std::set<std::string> text_set(const nlohmann::json& object, const char* name) {
  std::set<std::string> texts;
  for (const nlohmann::json& each : array_field(object, name)) {
    if (!each.is_string()) {
      throw DataError(fmt::format("'{}' is not a list of texts", name));
    }
    texts.insert(each.get<std::string>());
  }
  return texts;
}

}  // namespace

std::string to_text(const LinkBook& book) {
  nlohmann::json links = nlohmann::json::array();
  for (const GroupLink& each : book.links) {
    links.push_back({{"group", each.group},
                     {"from", each.link.from},
                     {"to", each.link.to},
                     {"kind", name_of(each.link.kind)},
                     {"gpu_direct", each.link.gpu_direct}});
  }
  const nlohmann::json json = {
      {"links", links}, {"nvls", book.nvls}, {"notes", book.notes}, {"trouble", book.trouble}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

LinkBook parse_link_book(std::string_view text) {
  const nlohmann::json json = parse_json(text);
  LinkBook book;
  for (const nlohmann::json& each : array_field(json, "links")) {
    book.links.insert(
        {text_field(each, "group"),
         {rank_field(each, "from"), rank_field(each, "to"),
          parse_link_kind(text_field(each, "kind")), flag_field(each, "gpu_direct")}});
  }
  book.nvls = text_set(json, "nvls");
  book.notes = text_set(json, "notes");
  book.trouble = text_field(json, "trouble");
  return book;
}

std::vector<LinkBook> gather_link_books(const LinkBook& own, Communicator& world) {
  std::vector<LinkBook> books;
  for (const std::string& text : all_gather_text(world, to_text(own))) {
    books.push_back(parse_link_book(text));
  }
  return books;
}

std::vector<LinkSummary> summarize(const std::vector<LinkBook>& books,
                                   const GroupMembers& members) {
  struct Kind {
    std::set<std::pair<int, int>> pairs;
    std::set<std::string> groups;
  };
  std::map<std::tuple<LinkKind, bool, bool>, Kind> kinds;
  const auto host = [&](int rank) { return rank < members.size() ? members.host(rank) : ""; };
  for (const LinkBook& book : books) {
    for (const GroupLink& each : book.links) {
      const Link& link = each.link;
      Kind& kind = kinds[{link.kind, link.gpu_direct, host(link.from) != host(link.to)}];
      kind.pairs.insert(std::minmax(link.from, link.to));
      kind.groups.insert(each.group);
    }
  }
  std::vector<LinkSummary> all;
  for (const auto& [key, kind] : kinds) {
    const auto& [name, gpu_direct, between_hosts] = key;
    all.push_back({name, gpu_direct, between_hosts, static_cast<std::int64_t>(kind.pairs.size()),
                   kind.groups});
  }
  return all;
}

std::string summary_text(const LinkSummary& summary) {
  return fmt::format("{}: {} of ranks {} ({})", link_text(summary.kind, summary.gpu_direct),
                     counted(summary.pairs, "pair"),
                     summary.between_hosts ? "between hosts" : "within a host",
                     fmt::join(summary.groups, ", "));
}

}  // namespace trireme
