// ProgressBar: one line on a terminal that is drawn over itself; elsewhere nothing, or a plain line
// once per interval. Owned by whoever works; one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace trireme {

class ProgressBar {
 public:
  // The work of the first n units, in any measure; empty where all units are alike.
  using Work = std::function<std::int64_t(std::int64_t n)>;

  // `total` in the caller's units. `plain_interval`: between lines where stderr is no terminal;
  // zero for none. `work`: what the time left is estimated from.
  ProgressBar(std::string label, std::int64_t total, std::chrono::seconds plain_interval = {},
              Work work = {});
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // Draws at most ten times a second. The first call says where the work begins: the time left is
  // estimated from the second on. `detail` follows the bar: "loss 3.21  12.3k tokens/s".
  void update(std::int64_t done, std::string_view detail = {});
  // Draws the last state and ends the line.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  void draw(bool last);
  std::int64_t work(std::int64_t n) const { return work_ ? work_(n) : n; }

  std::string label_;
  std::int64_t total_;
  std::chrono::seconds plain_interval_;
  Work work_;
  bool terminal_;
  std::int64_t first_ = -1;  // done at the first update: a resumed run starts later than 0
  std::int64_t done_ = 0;
  std::string detail_;
  Clock::time_point start_;
  Clock::time_point drawn_;
  bool finished_ = false;
};

// The width of a line in a file or a pipe: all parts, but no bar.
inline constexpr int kAnyWidth = 1 << 20;

// "train  42% |########            | 420/1000  2m10s left  loss 3.21", at most `width` characters.
// Where it is too long, the last parts of `detail` are left out first (two blanks separate parts),
// then the bar; no part is cut. first: where this process began counting, `seconds` ago.
std::string progress_text(std::string_view label, std::int64_t first, std::int64_t done,
                          std::int64_t total, double seconds, std::string_view detail, int width);

// The time that the rest takes at the rate so far: "2m10s left"; empty before anything was done and
// after the end.
std::string time_left_text(std::int64_t first, std::int64_t done, std::int64_t total,
                           double seconds);

}  // namespace trireme
