// JobModel describes a long training job for the simulation of its failures: its nodes, how often
// what goes wrong, how long recovery takes, and what it saves where. The keys and units are those
// of docs/planner-simulate.md. Plain values.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/config_binder.h"

namespace trireme {

enum class JobFaultKind : std::uint8_t {
  process,    // a rank dies or the program fails: the memory of its node survives
  hang,       // ranks wait forever, until a deadline passes
  node,       // a node is lost with its memory and needs repair
  group,      // all nodes of a failure group are lost at once, for example with their switch
  site,       // the whole machine is lost for some time: power, cooling, file system
  straggler,  // a node becomes slow, and all others wait for it
  stop        // the job saves and ends on request; only in journals
};
inline constexpr std::size_t kJobFaultKinds = 7;
std::string_view name_of(JobFaultKind kind);

struct JobModel {
  std::int64_t nodes = 2048;  // that compute
  std::int64_t spares = 0;
  std::int64_t min_nodes = 0;    // continue with as few, more slowly; 0: all
  std::int64_t group_nodes = 1;  // nodes of a failure group
  double days = 30;
  double steps = 0;  // the job ends after these; 0: after `days`
  double step_seconds = 10;

  struct Rates {
    std::string source = "llama3";  // published rates that process, hang and node default to
    // Per 1000 days of a node; group: per 1000 days of a failure group.
    double process = 0, hang = 0, node = 0, group = 0, straggler = 0;
    double site = 0;  // per year
    // A share of the nodes, evenly spread, fails more often than the others by a factor. The mean
    // over all nodes stays.
    double lemon_share = 0, lemon_factor = 1;
  } rates;

  struct Times {  // seconds, unless the name says otherwise; means if there is a spread
    double start = 120;
    double finish = 10;  // of a job that ends or stops on request, after its last save
    std::array<double, kJobFaultKinds> detect = {1, 65, 10, 10, 10, 0, 0};  // by JobFaultKind
    double exclude = 15;
    double relaunch = 60;
    double load_memory = 10;
    double load_disk = 120;
    double repair_hours = 24;
    double site_hours = 4;
    double spread = 0.3;  // standard deviation of the logarithm of a time; 0: always the mean
  } times;

  struct Checkpoint {
    IntegerOrWord every{0, "auto"};         // on disk, steps; 0: never
    IntegerOrWord memory_every{0, "auto"};  // in memory, steps; 0: never
    bool partner = true;                    // a copy in the memory of another node
    double stall = 2;                       // seconds for which a save stops training
    double memory_seconds = 20;             // from the stall until the partner has its copy
    double disk_seconds = 180;              // from the stall until the save is durable on disk
  } checkpoint;

  struct Straggler {
    double slowdown = 1.3;  // time of a step over that without
    double hours = 12;      // until the node recovers by itself
    double notice_minutes = 10;
    bool replace = false;  // relaunch without it once it is noticed, if there is a spare
  } straggler;

  struct Maintenance {
    double every_days = 0;  // 0: never
    double hours = 4;
  } maintenance;

  struct Queue {
    double limit_hours = 0;  // time limit of a job; 0: none
    double wait_hours = 1;   // until the next job starts, with healthy nodes
  } queue;

  // Returns the mean time between faults that stop the job, in seconds; infinity if none does.
  double mean_seconds_between_stops() const;
  // Return the steps between two saves; 0: never. `auto` is the interval of Young and Daly, as in
  // a run (docs/checkpoints.md).
  std::int64_t disk_interval() const;
  std::int64_t memory_interval() const;
  // Returns the cost of a save on disk, in seconds, from which `auto` follows.
  double disk_save_cost() const;
};

// Reads the model from a YAML file (may be empty) and key=value arguments. Throws a ConfigError
// that lists all problems.
JobModel load_job_model(const std::filesystem::path& file,
                        const std::vector<std::string>& arguments, const JobModel& defaults = {});

// Returns a warning for each kind of saves that come faster than one takes.
std::vector<std::string> save_warnings(const JobModel& model);

// Throws ConfigError if the model can't be simulated: more spares than nodes allow, or so many
// faults that they could not be drawn.
void check_job_model(const JobModel& model);

}  // namespace trireme
