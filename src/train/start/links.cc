#include "src/train/start/links.h"

#include <map>

#include <nlohmann/json.hpp>

#include "mpi/links/required_links.h"
#include "mpi/nccl/nccl_world.h"
#include "mpi/rank_fault.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

nlohmann::json to_json(const LinkSummary& summary) {
  return {{"kind", name_of(summary.kind)},
          {"gpu_direct", summary.gpu_direct},
          {"between_hosts", summary.between_hosts},
          {"pairs", summary.pairs},
          {"groups", summary.groups}};
}

void log_links(const std::vector<LinkBook>& books, const GroupMembers& members, Log& log) {
  nlohmann::json links = nlohmann::json::array();
  for (const LinkSummary& summary : summarize(books, members)) {
    links.push_back(to_json(summary));
    log.info(fmt::format("{} links GPUs over {}", nccl_version(), summary_text(summary)));
  }
  std::set<std::string> notes;
  for (const LinkBook& book : books) {
    notes.insert(book.notes.begin(), book.notes.end());
    if (!book.trouble.empty()) {
      notes.insert(book.trouble);
    }
  }
  std::map<std::string, int> switched;  // the number of ranks, by the name of a group
  for (const LinkBook& book : books) {
    for (const std::string& group : book.nvls) {
      ++switched[group];
    }
  }
  std::set<std::string> nvls;
  for (const auto& [group, ranks] : switched) {
    nvls.insert(group);
    log.info(fmt::format("the switches of NVLink can take sums of {} on {} of {} ranks", group,
                         ranks, members.size()));
  }
  for (const std::string& note : notes) {
    log.info(printable(note));
  }
  log.event("links",
            {{"nccl", nccl_version()}, {"links", links}, {"nvls", nvls}, {"notes", notes}});
}

}  // namespace

void check_links(const std::vector<std::string>& required, const LinkBook& own, Communicator& world,
                 Log& log) {
  const std::vector<LinkBook> books = gather_link_books(own, world);
  if (world.rank() == 0 && world.size() > 1) {
    log_links(books, world.members(), log);
  }
  if (const auto fault = find_link_fault(required, books, world.members())) {
    if (fault->rank) {
      throw RankFault(fault->text, *fault->rank);
    }
    throw ConfigError(fault->text);
  }
}

}  // namespace trireme
