#include "src/train/startup.h"

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "mpi/agreement.h"

namespace trireme {

void log_ranks(const MpiSession& session, Communicator& world, int threads,
               std::string_view kernels, Log& log) {
  const RankPlace& own = session.place();
  const std::string line = fmt::format("{:>6}  {:<20} {:>8}  {:<14} {:>7}  {}", own.rank, own.host,
                                       ::getpid(), own.binding.cpus, threads, kernels);
  log.event("rank", {{"rank", own.rank},
                     {"host", own.host},
                     {"pid", ::getpid()},
                     {"cores", own.binding.cores},
                     {"cpus", own.binding.cpus},
                     {"threads", threads},
                     {"kernels", kernels}});
  const std::vector<std::string> lines = all_gather_text(world, line);
  const std::int64_t wanted = all_reduce_value(
      world, std::int64_t{threads * own.sharers > own.binding.cores}, ReduceOp::sum);
  if (world.rank() != 0) {
    return;
  }
  log.info(fmt::format("{:>6}  {:<20} {:>8}  {:<14} {:>7}  {}", "rank", "host", "pid", "cores",
                       "threads", "kernels"));
  for (const std::string& rank_line : lines) {
    log.info(rank_line);
  }
  if (wanted > 0) {
    log.warning(fmt::format(
        "{} ranks share cores with other ranks ({} threads each, {} ranks on {} cores here): the "
        "step will be slow; start fewer ranks, bind them (mpirun --bind-to core --map-by "
        "slot:PE=N) or lower train.threads",
        wanted, threads, own.sharers, own.binding.cores));
  }
}

void check_same_config(Communicator& world, const LoadedConfig& loaded) {
  nlohmann::json own = nlohmann::json::object();
  for (const ResolvedKey& key : loaded.binder.resolved()) {
    own[key.key] = key.value.to_yaml();
  }
  // A path may hold any bytes.
  const std::string text = own.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  own = nlohmann::json::parse(text);
  const auto roots = nlohmann::json::parse(broadcast_text(world, text, 0));
  std::string fault;
  for (const auto& [key, value] : own.items()) {
    const std::string other = roots.value(key, std::string("unknown"));
    if (fault.empty() && other != value) {
      fault = fmt::format("{} is {} here ({}), {} on rank 0", key, value.get<std::string>(),
                          loaded.binder.origin_of(key), other);
    }
  }
  if (const std::string faults = gather_faults(world, fault); !faults.empty()) {
    throw ConfigError(fmt::format(
        "the ranks were given different configurations: {}. Put the same file on all nodes, and "
        "forward the TRIREME_ variables (mpirun -x NAME)",
        faults));
  }
}

void check_same_kernels(Communicator& world, std::string_view kernels,
                        const std::string& reproducibility) {
  const std::vector<std::string> all = all_gather_text(world, std::string(kernels));
  if (reproducibility == "fast") {
    return;
  }
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw ConfigError(fmt::format(
          "rank 0 ({}) computes with {} kernels and rank {} ({}) with {}: their bits differ, and "
          "numerics.reproducibility is {}; set TRIREME_KERNELS={} on all nodes, or choose fast",
          world.host(0), all[0], rank, world.host(static_cast<int>(rank)), all[rank],
          reproducibility, std::min(all[0], all[rank])));
    }
  }
}

}  // namespace trireme
