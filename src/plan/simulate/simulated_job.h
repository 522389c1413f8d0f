// SimulatedJob is the state of one draw while it is simulated (job_simulation.h): the clock, what
// is done, and what is lost. simulated_job_recovery.cc has faults and launches, simulated_job.cc
// training and planned pauses. Refers to the model and the faults.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "src/plan/simulate/job_faults.h"
#include "src/plan/simulate/job_nodes.h"
#include "src/plan/simulate/job_saves.h"
#include "src/plan/simulate/job_simulation.h"
#include "src/plan/simulate/job_stragglers.h"

namespace trireme {

class SimulatedJob {
 public:
  SimulatedJob(const JobModel& model, const JobFaults& faults);
  SimulatedRun run();

 private:
  static constexpr double kForever = std::numeric_limits<double>::infinity();
  static constexpr double kHour = 3600;
  // The times that a fault needs are spread independently of each other.
  enum Spread : std::uint32_t {
    detect_time,
    exclude_time,
    relaunch_time,
    load_time,
    repair_time,
    site_time
  };

  bool is_over() const { return now_ >= end_ || step_ >= last_step_; }
  void spend(SimulatedCause cause, double seconds);

  double fault_time() const { return feed_.next_at(); }
  JobFault take_fault();
  // Calls `act` with each node that the fault takes away.
  template <class Act>
  void each_lost_node(const JobFault& fault, Act act) const {
    if (fault.kind == JobFaultKind::node) {
      act(fault.node);
    } else if (fault.kind == JobFaultKind::group) {
      const std::int64_t from = fault.node * model_.group_nodes;
      const std::int64_t to = std::min(from + model_.group_nodes, nodes_.total());
      for (std::int64_t node = from; node < to; ++node) {
        act(node);
      }
    }
  }
  // Returns whether the fault stops the job.
  bool hits(const JobFault& fault) const;
  double time_of(const JobFault* fault, Spread which, double mean) const;
  // Applies the consequences, from the time `at` on, for nodes and their memory.
  void note(const JobFault& fault, double at);
  void lose(std::int64_t node, double back);
  void count(const JobFault& fault) { ++run_.faults[static_cast<std::size_t>(fault.kind)]; }

  void recover(const JobFault& fault);
  // The job has stopped: from the fault until old ranks are gone.
  void fall(const JobFault& fault);
  // Saves on disk, ends, and starts again after a pause.
  void stop(SimulatedCause cause, double seconds);
  void save_at_end();

  // Brings the job to the point where it trains. is_fresh: a new job, not a relaunch within one.
  void bring_up(bool is_fresh, const JobFault* fault);
  // Takes note of what happened while no rank was running. keeps_nodes: whether the job kept its
  // nodes meanwhile. One that comes out of the queue gets healthy nodes, and what failed before
  // does not matter to it; only losses of the site do.
  void absorb(bool keeps_nodes);
  // The queue has let a new job start, with healthy nodes and nothing in memory.
  void leave_queue();
  // Returns whether there are enough nodes. Otherwise waits for the next repair, or for a new job.
  bool has_nodes(bool& is_fresh);
  // Starts the ranks and loads. Returns the fault that ended the attempt before it trained.
  std::optional<JobFault> launch(bool is_fresh, const ResumePoint& from, const JobFault* fault);
  std::optional<JobFault> pass(SimulatedCause cause, double seconds);
  void resume(const ResumePoint& from);

  double next_save(double interval) const;
  double slowdown() const;
  void train_until(double until);
  // seconds: the time of a step. until: the time at which `step` is reached.
  void advance(double step, double seconds, double until);
  // Saves what is due. Returns false if there is no time for it before `until`; it stays due.
  bool save(double until);

  double next_maintenance() const;
  double pause_time() const;
  void pause();
  void replace_straggler();

  const JobModel& model_;
  FaultFeed feed_;
  JobNodes nodes_;
  JobSaves saves_;
  JobStragglers stragglers_;
  double memory_interval_;  // steps; 0: never
  double disk_interval_;
  double end_;        // of the simulation, seconds
  double last_step_;  // of the job
  SimulatedRun run_;
  double now_ = 0;
  double step_ = 0;  // steps done since the start of the job, with the fraction of the current one
  double reached_ = 0;             // the most that was ever done
  double next_memory_ = kForever;  // steps after which a save is due
  double next_disk_ = kForever;
  double site_until_ = 0;          // when the site works again
  double queue_until_ = kForever;  // when a new job starts, if one is wanted
  double limit_at_ = kForever;
  double maintenance_at_ = kForever;
};

}  // namespace trireme
