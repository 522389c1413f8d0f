#include "benchmarks/per_node.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <set>
#include <string_view>
#include <thread>

#include <fmt/core.h>

#include "src/base/error.h"
#include "src/base/node_name.h"

namespace trireme {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::chrono::milliseconds kNap{20};

// Waits without using a core, so that others on the node can measure.
void wait_asleep(Communicator& world) {
  Pending barrier = world.barrier();
  while (!barrier.done()) {
    std::this_thread::sleep_for(kNap);
  }
  barrier.wait();
}

void add_host(Json& results, const std::string& node) {
  for (Json& result : results) {
    result["params"]["host"] = node;
  }
}

std::set<std::string> nodes_of(const std::vector<RankPlace>& places) {
  std::set<std::string> nodes;
  for (const RankPlace& place : places) {
    nodes.insert(place.node);
  }
  return nodes;
}

// Nodes of Slurm may share a host, as on a test cluster.
bool is_first_on_node(const MpiSession& session) {
  const auto& places = session.places();
  const RankPlace& own = session.place();
  return std::none_of(places.begin(), places.end(), [&](const RankPlace& other) {
    return other.rank < own.rank && other.node == own.node;
  });
}

// Joins the reports of all ranks into one, in which a heading with the rank's node stands before
// each text. All ranks call it.
NodeReport gathered(MpiSession& session, const NodeReport& own, const char* what) {
  NodeReport all;
  all.results = Json::array();
  const std::string packed = Json{{"results", own.results}, {"text", own.text}}.dump();
  const std::vector<std::string> reports = all_gather_text(session.world(), packed);
  for (std::size_t rank = 0; rank < reports.size(); ++rank) {
    const Json report = Json::parse(reports[rank]);
    for (const Json& result : report.at("results")) {
      all.results.push_back(result);
    }
    const std::string text = report.at("text");
    all.text += text.empty() || reports.size() == 1
                    ? text
                    : fmt::format("# {} {}:\n{}", what, session.places()[rank].node, text);
  }
  return all;
}

}  // namespace

bool has_several_ranks() {
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    const char* size = std::getenv(name);
    if (size != nullptr && std::string_view(size) != "1") {
      return true;
    }
  }
  return false;
}

NodeReport on_each_rank(AppContext& context, const std::function<NodeReport()>& measure) {
  MpiSession& session = context.session();
  NodeReport own = measure();
  add_host(own.results, session.place().node);
  for (Json& result : own.results) {
    result["params"]["rank"] = session.place().rank;
  }
  return gathered(session, own, "a rank of");
}

NodeReport on_each_node(AppContext& context, SecondRank second,
                        const std::function<NodeReport()>& measure) {
  if (!has_several_ranks() && !context.has_session()) {
    NodeReport own = measure();
    add_host(own.results, node_name());
    return own;
  }
  MpiSession& session = context.session();
  if (second == SecondRank::refused &&
      nodes_of(session.places()).size() < session.places().size()) {
    throw ConfigError(
        "this benchmark measures a whole node by one process: start one rank per node (mpirun "
        "--map-by ppr:1:node, srun --mpi=pmix --ntasks-per-node=1), or run it without mpirun or "
        "srun");
  }
  NodeReport own;
  own.results = Json::array();
  if (is_first_on_node(session)) {
    own = measure();
    add_host(own.results, session.place().node);
  }
  wait_asleep(session.world());
  return gathered(session, own, "node");
}

}  // namespace trireme
