#include "slurm/doctor/comparisons.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"
#include "src/base/json_number.h"
#include "src/base/same_kernels.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// Trireme does not depend on wall clocks, but make, NFS, Kerberos and readers of logs do.
constexpr double kMostApartSeconds = 2;

// Makes a finding for each rank that differs from rank 0. Those of one host are merged later.
template <class Describe>
std::vector<Finding> differing(const std::vector<RankFacts>& ranks, std::string RankFacts::*field,
                               const Describe& describe) {
  std::vector<Finding> found;
  for (const RankFacts& rank : ranks) {
    if (rank.*field != ranks.front().*field) {
      found.push_back(describe(rank));
    }
  }
  return found;
}

}  // namespace

nlohmann::json to_json(const RankFacts& facts) {
  return {{"host", facts.host},
          {"build", facts.build},
          {"mpi", facts.mpi},
          {"kernels", facts.kernels},
          {"clock", facts.clock_ahead_seconds},
          {"threads", facts.threads},
          {"cores", facts.cores},
          {"sharers", facts.sharers},
          {"shares_run_dir", facts.shares_run_dir},
          {"shares_checkpoint_dir", facts.shares_checkpoint_dir}};
}

RankFacts facts_from_json(const nlohmann::json& json) {
  RankFacts facts;
  facts.host = text_field(json, "host");
  facts.build = text_field(json, "build");
  facts.mpi = text_field(json, "mpi");
  facts.kernels = text_field(json, "kernels");
  facts.clock_ahead_seconds = number_field(json, "clock");
  facts.threads = static_cast<int>(count_field(json, "threads", 1, 1 << 20));
  facts.cores = static_cast<int>(count_field(json, "cores", 1, 1 << 20));
  facts.sharers = static_cast<int>(count_field(json, "sharers", 1, 1 << 20));
  facts.shares_run_dir = flag_field(json, "shares_run_dir");
  facts.shares_checkpoint_dir = flag_field(json, "shares_checkpoint_dir");
  return facts;
}

std::vector<Finding> compare_versions(const std::vector<RankFacts>& ranks,
                                      const std::string& reproducibility) {
  const RankFacts& first = ranks.front();
  const bool promised = reproducibility != "fast";
  std::vector<Finding> found = differing(ranks, &RankFacts::build, [&](const RankFacts& rank) {
    return Finding{
        promised ? Severity::error : Severity::warning,
        promised ? ExitCode::usage : ExitCode::below_threshold,
        fmt::format("the program is {} here, but {} on {}", rank.build, first.build, first.host),
        rank.host, "install the same build on all nodes"};
  });
  append(found, differing(ranks, &RankFacts::mpi, [&](const RankFacts& rank) {
           return Finding{Severity::error, ExitCode::usage,
                          fmt::format("the MPI library is '{}' here, but '{}' on {}", rank.mpi,
                                      first.mpi, first.host),
                          rank.host, "install the same MPI on all nodes, or load the same module"};
         }));
  append(
      found, differing(ranks, &RankFacts::kernels, [&](const RankFacts& rank) {
        return Finding{
            promised ? Severity::error : Severity::warning,
            promised ? ExitCode::usage : ExitCode::below_threshold,
            fmt::format("the kernels are {} here, but {} on {}: their results have different bits",
                        rank.kernels, first.kernels, first.host),
            rank.host,
            same_kernels_advice(rank.kernels, first.kernels) +
                ", or choose numerics.reproducibility=fast"};
      }));
  return found;
}

std::vector<Finding> compare_clocks(const std::vector<RankFacts>& ranks) {
  std::vector<Finding> found;
  for (const RankFacts& rank : ranks) {
    const double apart = rank.clock_ahead_seconds;
    if (std::abs(apart) > kMostApartSeconds) {
      found.push_back(warning_of(fmt::format("the wall clock is {} {} that of {}: log lines of "
                                             "these nodes cannot be sorted by time",
                                             format_seconds(std::round(std::abs(apart))),
                                             apart > 0 ? "ahead of" : "behind", ranks.front().host),
                                 rank.host, "synchronize the clock with chronyd or ntpd"));
    }
  }
  return found;
}

std::vector<Finding> check_cores(const std::vector<RankFacts>& ranks) {
  std::vector<Finding> found;
  for (const RankFacts& rank : ranks) {
    if (rank.threads * rank.sharers > rank.cores) {
      found.push_back(warning_of(
          fmt::format("{} of {} {} {}: a step will take {:.1f} times as long",
                      counted(rank.sharers, "rank"), counted(rank.threads, "thread"),
                      rank.sharers == 1 ? "has" : "share", counted(rank.cores, "core"),
                      static_cast<double>(rank.threads * rank.sharers) / rank.cores),
          rank.host,
          "start fewer ranks, request more cores per task (--cpus-per-task, mpirun --map-by "
          "slot:PE=N --bind-to core), or lower train.threads"));
    } else if (rank.sharers > 1 && rank.threads * rank.sharers < rank.cores / 2) {
      found.push_back(
          warning_of(fmt::format("{} of {} leave most of {} idle", counted(rank.sharers, "rank"),
                                 counted(rank.threads, "thread"), counted(rank.cores, "core")),
                     rank.host, "raise train.threads, or set it to auto"));
    }
  }
  return found;
}

std::vector<Finding> check_shared_folder(const std::vector<RankFacts>& ranks) {
  std::vector<Finding> found;
  for (const RankFacts& rank : ranks) {
    for (const auto& [key, is_shared] : {std::pair("run.dir", rank.shares_run_dir),
                                         std::pair("checkpoint.dir", rank.shares_checkpoint_dir)}) {
      if (!is_shared) {
        found.push_back(
            {Severity::error, ExitCode::usage,
             fmt::format("{} here is not the same folder as on {}", key, ranks.front().host),
             rank.host, fmt::format("choose a {} on a file system that all nodes mount", key)});
      }
    }
  }
  return found;
}

}  // namespace trireme
