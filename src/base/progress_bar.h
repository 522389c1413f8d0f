// ProgressBar is a line on a terminal that is redrawn in place. Without a terminal it prints
// nothing, or a plain line once per interval. For one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace trireme {

class ProgressBar {
 public:
  // Returns the work of the first n units, in any measure. Empty if all units take equal work.
  using Work = std::function<std::int64_t(std::int64_t n)>;

  // total: in the caller's units. plain_interval: time between lines if stderr is not a terminal;
  // zero for none. work: basis of the estimated time left.
  ProgressBar(std::string label, std::int64_t total, std::chrono::milliseconds plain_interval = {},
              Work work = {});
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws at most ten times per second. The first call sets where the work begins; later calls
  // estimate the time left. `detail` follows the bar: "loss 3.21  12.3k tokens/s".
  void update(std::int64_t done, std::string_view detail = {});
  // Removes the bar from the terminal, so that something else can be printed. The next update draws
  // it again; without one, finish() does nothing.
  void hide();
  // Draws the final state and ends the line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(bool last);
  std::int64_t work(std::int64_t n) const { return work_ ? work_(n) : n; }

  std::string label_;
  std::int64_t total_;
  std::chrono::milliseconds plain_interval_;
  Work work_;
  bool terminal_;
  std::int64_t first_ = -1;  // `done` of the first update, which is above 0 in a resumed run
  std::int64_t done_ = 0;
  std::string detail_;
  Clock::time_point start_;
  Clock::time_point drawn_;
  bool hidden_ = false;
  bool finished_ = false;
};

// This width stands for a file or a pipe: all parts are shown, but no bar.
inline constexpr int kAnyWidth = 1 << 20;

// Returns "train  42% |########            | 420/1000  2m10s left  loss 3.21" in at most `width`
// characters. If that is too long, leaves out the last parts of `detail`, which two blanks
// separate, and then the bar; no part is cut. first: where this process started to count, `seconds`
// ago.
std::string progress_text(std::string_view label, std::int64_t first, std::int64_t done,
                          std::int64_t total, double seconds, std::string_view detail, int width);

// Returns the time that the rest takes at the rate so far, "2m10s left", or "" before the first
// progress and after the end.
std::string time_left_text(std::int64_t first, std::int64_t done, std::int64_t total,
                           double seconds);

}  // namespace trireme
