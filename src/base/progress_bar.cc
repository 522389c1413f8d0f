#include "src/base/progress_bar.h"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>

#include "src/base/terminal.h"
#include "src/base/units.h"

namespace trireme {
namespace {

constexpr int kBarCells = 24;
constexpr std::chrono::milliseconds kRedraw{100};

std::string bar_of(double part) {
  const auto cells = static_cast<std::size_t>(part * kBarCells);
  return fmt::format("|{}{}| ", std::string(cells, '#'), std::string(kBarCells - cells, ' '));
}

// Appends as many parts of `detail` as fit into the width.
void append_parts(std::string& text, std::string_view detail, std::size_t width) {
  while (!detail.empty()) {
    const std::string_view part = detail.substr(0, detail.find("  "));
    if (text.size() + 2 + part.size() > width) {
      return;
    }
    text += fmt::format("  {}", part);
    detail.remove_prefix(std::min(part.size() + 2, detail.size()));
  }
}

// Does the work of progress_text(), with the time given as text.
std::string bar_text(std::string_view label, std::int64_t done, std::int64_t total,
                     const std::string& time, std::string_view detail, int width) {
  const auto columns = static_cast<std::size_t>(std::max(width, 0));
  const double part =
      total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0)
                : 1.0;
  const std::string before = fmt::format("{} {:3.0f}% ", label, part * 100);
  const std::string after = fmt::format("{}/{}{}{}", done, total, time.empty() ? "" : "  ", time);
  std::string text = before + bar_of(part) + after;
  if (width == kAnyWidth || text.size() > columns) {
    text = before + after;
  }
  append_parts(text, detail, columns);
  return text.size() <= columns ? text : "";
}

std::string time_text(bool ended, double seconds, const std::string& left) {
  return ended ? "in " + format_seconds(seconds) : left;
}

}  // namespace

std::string time_left_text(std::int64_t first, std::int64_t done, std::int64_t total,
                           double seconds) {
  if (done <= first || done >= total) {
    return "";
  }
  return format_seconds(seconds * static_cast<double>(total - done) /
                        static_cast<double>(done - first)) +
         " left";
}

std::string progress_text(std::string_view label, std::int64_t first, std::int64_t done,
                          std::int64_t total, double seconds, std::string_view detail, int width) {
  const std::string left = time_left_text(first, done, total, seconds);
  return bar_text(label, done, total, time_text(done >= total, seconds, left), detail, width);
}

ProgressBar::ProgressBar(std::string label, std::int64_t total,
                         std::chrono::milliseconds plain_interval, Work work)
    : label_(std::move(label)),
      total_(total),
      plain_interval_(plain_interval),
      work_(std::move(work)),
      terminal_(terminal_columns() > 0),
      start_(Clock::now()),
      drawn_(start_) {}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::update(std::int64_t done, std::string_view detail) {
  const bool begins = first_ < 0;
  if (begins) {
    first_ = done;
    start_ = Clock::now();
  }
  const bool appears = begins || hidden_;
  hidden_ = false;
  done_ = done;
  detail_ = detail;
  const auto now = Clock::now();
  const auto interval = terminal_ ? Clock::duration(kRedraw) : Clock::duration(plain_interval_);
  // finish() reports the end.
  if (!terminal_ && done >= total_) {
    return;
  }
  if ((appears && terminal_) || (interval > Clock::duration::zero() && now - drawn_ >= interval)) {
    drawn_ = now;
    draw(false);
  }
}

void ProgressBar::hide() {
  if (terminal_ && first_ >= 0 && !hidden_ && !finished_) {
    std::fputs(line_start().data(), stderr);
    std::fflush(stderr);
  }
  hidden_ = true;
}

void ProgressBar::finish() {
  if (!finished_ && !hidden_ && first_ >= 0 && (terminal_ || plain_interval_.count() > 0)) {
    draw(true);
  }
  finished_ = true;
}

void ProgressBar::draw(bool last) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::string left = time_left_text(work(first_), work(done_), work(total_), seconds);
  const std::string time = time_text(done_ >= total_, seconds, left);
  const std::string text = bar_text(label_, done_, total_, time, detail_,
                                    terminal_ ? terminal_columns() - 1 : kAnyWidth);
  if (terminal_) {
    std::fprintf(stderr, "%s%s%s", line_start().data(), text.c_str(), last ? "\n" : "");
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  std::fflush(stderr);
}

}  // namespace trireme
