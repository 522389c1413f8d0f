#include "src/train/start/startup.h"

#include <algorithm>
#include <array>
#include <map>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "mpi/agreement.h"
#include "src/base/config_tree.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/same_kernels.h"
#include "src/base/units.h"
#include "src/kernels/instructions.h"
#include "src/nn/model_size.h"
#include "src/train/run/batch_ramp_text.h"
#include "src/train/run/run_directory.h"

namespace trireme {
namespace {

// Returns the values that differ, "commit 1a2b3c, nccl NCCL 2.28.9", as they are in each of two
// objects with the same keys.
std::pair<std::string, std::string> differing_values(const nlohmann::json& a,
                                                     const nlohmann::json& b) {
  std::array<std::string, 2> texts;
  const nlohmann::json flat = a.flatten();
  for (const auto& [path, value] : flat.items()) {
    const nlohmann::json::json_pointer at(path);
    const nlohmann::json other = b.contains(at) ? b.at(at) : nlohmann::json();
    if (other == value) {
      continue;
    }
    const auto text_of = [](const nlohmann::json& one) {
      return one.is_string() ? one.get<std::string>() : one.dump();
    };
    const std::string separator = texts[0].empty() ? "" : ", ";
    texts[0] += separator + at.back() + " " + text_of(value);
    texts[1] += separator + at.back() + " " + text_of(other);
  }
  return {texts[0], texts[1]};
}

// Rows are at most 78 columns wide, unless a host has a longer name.
constexpr const char* kRankRow = "{:>4}  {:<16} {:>7}  {:<12} {:>6} {:>4}  {:>7}  {}";

// Returns whether a list of numbers in hwloc's format contains more than one.
bool names_several(const std::string& list) {
  return list.find_first_of(",-") != std::string::npos;
}

// Returns how many ranks each node has, sorted by the nodes' first ranks.
std::vector<int> ranks_of_nodes(const std::vector<RankPlace>& places) {
  std::vector<int> counts;
  std::map<std::string, std::size_t> index_of_node;
  for (const RankPlace& place : places) {
    const auto [found, is_new] = index_of_node.try_emplace(place.node, counts.size());
    counts.resize(index_of_node.size());
    ++counts[found->second];
  }
  return counts;
}

}  // namespace

void announce_run(const RunConfig& config, int ranks, Log& log) {
  log.info(fmt::format(
      "{}: {} parameters, {} steps of {} x {} tokens, {} rank{}", config.run_dir.string(),
      format_count(static_cast<double>(parameter_count(config.model))), config.train.steps,
      config.train.global_batch, config.data.sequence, ranks, ranks == 1 ? "" : "s"));
  if (config.batches().stages() > 1) {
    log.info(describe_ramp(config.batches()));
  }
  log.info("preparing: connecting ranks, planning memory, opening data, looking for a checkpoint");
}

void warn_of_bindings(const std::vector<RankPlace>& places, int threads, Log& log) {
  const auto ranks_where = [&](const auto& is_so) {
    return std::count_if(places.begin(), places.end(), is_so);
  };
  const auto crowded = ranks_where(
      [&](const RankPlace& place) { return threads * place.sharers > place.binding.cores; });
  const auto spread = ranks_where([](const RankPlace& place) {
    return place.local_size > 1 && names_several(place.binding.numa_nodes);
  });
  if (crowded > 0) {
    log.warning(fmt::format(
        "{} too few cores ({} per rank; on the first host, {} on {}): steps will be slow; start "
        "fewer ranks, bind them (mpirun --bind-to core --map-by slot:PE=N), or lower train.threads",
        crowded == 1 ? "1 rank has" : fmt::format("{} ranks have", crowded),
        counted(threads, "thread"), counted(places.front().sharers, "rank"),
        counted(places.front().binding.cores, "core")));
  }
  if (spread > 0) {
    log.warning(fmt::format(
        "{} not bound to one NUMA node, although several ranks share the host: memory accesses may "
        "be slow; bind the ranks (mpirun --bind-to numa, srun --cpu-bind=ldoms)",
        spread == 1 ? "1 rank is" : fmt::format("{} ranks are", spread)));
  }
}

void log_ranks(const std::vector<RankPlace>& places, Communicator& world, int threads,
               std::string_view kernels, Log& log) {
  const RankPlace& own = places.at(static_cast<std::size_t>(world.rank()));
  const CoreBinding& binding = own.binding;
  const std::string line = fmt::format(kRankRow, own.rank, own.host, ::getpid(), binding.cpus,
                                       binding.packages, binding.numa_nodes, threads, kernels);
  log.event("rank", {{"rank", own.rank},
                     {"host", own.host},
                     {"pid", ::getpid()},
                     {"cores", binding.cores},
                     {"cpus", binding.cpus},
                     {"sockets", binding.packages},
                     {"numa_nodes", binding.numa_nodes},
                     {"threads", threads},
                     {"kernels", kernels}});
  const std::vector<std::string> lines = all_gather_text(world, line);
  const std::vector<std::string> shapes =
      all_gather_text(world, own.local_rank == 0 ? host_shape().text() : "");
  if (world.rank() != 0) {
    return;
  }
  log.event("nodes", {{"ranks", ranks_of_nodes(places)}});
  std::vector<std::string> rows = {fmt::format(kRankRow, "rank", "host", "pid", "cores", "socket",
                                               "numa", "threads", "kernels")};
  rows.insert(rows.end(), lines.begin(), lines.end());
  log.table(fmt::format("starting {} on {}", counted(world.size(), "rank"),
                        counted(std::count_if(shapes.begin(), shapes.end(),
                                              [](const auto& shape) { return !shape.empty(); }),
                                "host")),
            rows);
  for (std::size_t rank = 0; rank < shapes.size(); ++rank) {
    if (!shapes[rank].empty()) {
      log.info(fmt::format("host {}: {}", world.host(static_cast<int>(rank)), shapes[rank]));
    }
  }
  warn_of_bindings(places, threads, log);
}

void check_folders(const RunConfig& config) {
  for (const auto& [key, path] : {std::pair("run.dir", config.run_dir),
                                  std::pair("checkpoint.dir", config.checkpoint_dir())}) {
    std::error_code ignored;
    std::filesystem::path there = std::filesystem::absolute(path, ignored);
    while (!std::filesystem::exists(there, ignored) && there.has_relative_path()) {
      there = there.parent_path();
    }
    if (!std::filesystem::is_directory(there, ignored)) {
      throw ConfigError(fmt::format("{} is {}, but {} is not a folder: choose another path", key,
                                    path.string(), there.string()));
    }
    if (is_read_only(path)) {
      throw ConfigError(fmt::format(
          "{}: {} lies on a file system that is mounted read-only: choose a writable path", key,
          path.string()));
    }
  }
}

bool is_finished(const RunConfig& config) {
  if (!config.checkpoint.resume.is("auto")) {
    return false;
  }
  const std::int64_t done = RunDirectory(config.run_dir).done_step().value_or(-1);
  return done >= config.train.steps &&
         std::filesystem::exists(config.checkpoint_dir() / step_folder_name(done));
}

std::vector<std::string> misspelt_switches(const char* const* environment) {
  constexpr std::string_view kPrefix = "TRIREME_";
  static const std::vector<std::string> known = {"FAULTS",
                                                 "GENERATION",
                                                 "KERNELS",
                                                 "LAUNCH_ID",
                                                 "MTBF_HOURS",
                                                 "LAUNCH_NODES",
                                                 "LAUNCH_RANKS_PER_NODE",
                                                 "NODE",
                                                 "NODE_DIR",
                                                 "SITE_DIR",
                                                 "START_DEADLINE",
                                                 "TERMINAL_COLUMNS"};
  std::vector<std::string> warnings;
  for (; *environment != nullptr; ++environment) {
    std::string_view name = *environment;
    name = name.substr(0, name.find('='));
    if (!name.starts_with(kPrefix) || name.find("__") != std::string_view::npos) {
      continue;
    }
    const std::string word(name.substr(kPrefix.size()));
    const std::string nearest = nearest_word(word, known);
    if (!nearest.empty() && nearest != word) {
      warnings.push_back(fmt::format(
          "environment {}: unknown variable, ignored; did you mean {}{}?", name, kPrefix, nearest));
    }
  }
  return warnings;
}

void check_same_config(Communicator& world, const LoadedConfig& loaded) {
  nlohmann::json own = nlohmann::json::object();
  for (const ResolvedKey& key : loaded.binder.resolved()) {
    own[key.key] = key.value.to_yaml();
  }
  // Replaces invalid UTF-8, since a path may contain any bytes.
  const std::string text = own.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  own = nlohmann::json::parse(text);
  const auto roots = nlohmann::json::parse(broadcast_text(world, text, 0));
  std::string fault;
  for (const auto& [key, value] : own.items()) {
    const std::string other = roots.value(key, std::string("unknown"));
    if (fault.empty() && other != value) {
      fault = fmt::format("{} is {} here ({}), but {} on rank 0", key, value.get<std::string>(),
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

void check_same_build(Communicator& world, const nlohmann::json& build,
                      const std::string& reproducibility, Log& log) {
  const std::vector<std::string> all = all_gather_text(world, build.dump());
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) {
      continue;
    }
    const auto [first, other] = differing_values(parse_json(all[0]), parse_json(all[rank]));
    const std::string difference =
        fmt::format("the ranks run different programs: rank 0 ({}) has {}, but rank {} ({}) has {}",
                    world.host(0), first, rank, world.host(static_cast<int>(rank)), other);
    if (reproducibility != "fast") {
      throw ConfigError(
          fmt::format("{}: their results may have different bits, and numerics.reproducibility is "
                      "{}; install the same build and the same libraries on all nodes (check "
                      "LD_LIBRARY_PATH there), or choose fast",
                      difference, reproducibility));
    }
    if (world.rank() == 0) {
      log.warning(fmt::format("{}: install the same build on all nodes", difference));
    }
    return;
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
          "rank 0 ({}) computes with {} kernels, but rank {} ({}) with {}: their "
          "results have different bits, and numerics.reproducibility is {}; {}, or choose fast",
          world.host(0), all[0], rank, world.host(static_cast<int>(rank)), all[rank],
          reproducibility, same_kernels_advice(all[0], all[rank])));
    }
  }
}

void warn_of_lesser_instructions(std::string_view kernels, Log& log) {
  const std::string lesser = lesser_instructions(kernels);
  if (!lesser.empty()) {
    log.warning(fmt::format(
        "matrix products use {}: they are slower, and a run has other bits than with all "
        "instructions of this processor (docs/reproducibility.md)",
        lesser));
  }
}

}  // namespace trireme
