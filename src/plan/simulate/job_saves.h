// JobSaves keeps the checkpoints of a simulated job: where they are, since when they are complete,
// and which parts of those in memory were lost with their nodes. A plain value.
#pragma once

#include <cstdint>
#include <vector>

namespace trireme {

enum class SavePlace : std::uint8_t { nowhere, memory, disk };

struct ResumePoint {
  SavePlace place = SavePlace::nowhere;
  double step = 0;
};

class JobSaves {
 public:
  // partner_distance: the slot whose memory holds the copies of slot i is i + distance, modulo the
  // number of slots; 0: there are no copies.
  JobSaves(std::int64_t slots, std::int64_t partner_distance)
      : slots_(slots), distance_(partner_distance % slots) {}

  // All ranks have written their parts; the partners will have theirs at `copied_at`.
  void save_in_memory(double step, double copied_at);
  void save_on_disk(double step, double durable_at);
  // The job stops at this time: what is not complete by now will never be.
  void interrupt(double at);
  // The node in the slot is lost with its memory. Call interrupt() first.
  void lose(std::int64_t slot);
  void lose_memory() { memory_.clear(); }

  ResumePoint newest() const;
  // Returns when the last save on disk is durable; 0 if there is none.
  double disk_busy_until() const { return disk_.empty() ? 0 : disk_.back().complete_at; }

 private:
  struct Save {
    double step = 0;
    double complete_at = 0;
    std::vector<std::int64_t> lost = {};  // slots; of saves in memory
  };
  bool is_whole(const Save& save) const;

  std::int64_t slots_;
  std::int64_t distance_;
  std::vector<Save> memory_;  // oldest first
  std::vector<Save> disk_;
};

}  // namespace trireme
