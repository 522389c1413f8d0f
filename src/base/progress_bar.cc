#include "src/base/progress_bar.h"

#include <algorithm>
#include <cstdio>

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "src/base/units.h"

namespace trireme {
namespace {

constexpr int kBarCells = 24;
constexpr int kUsualWidth = 100;
constexpr std::chrono::milliseconds kRedraw{100};

int terminal_width() {
  winsize size{};
  const bool known = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col - 1 : kUsualWidth;
}

}  // namespace

std::string progress_text(std::string_view label, std::int64_t first, std::int64_t done,
                          std::int64_t total, double seconds, std::string_view detail, int width) {
  const double part =
      total > 0 ? std::clamp(static_cast<double>(done) / static_cast<double>(total), 0.0, 1.0)
                : 1.0;
  const auto cells = static_cast<std::size_t>(part * kBarCells);
  std::string left;
  if (done > first && done < total) {
    left = "  " +
           format_seconds(seconds * static_cast<double>(total - done) /
                          static_cast<double>(done - first)) +
           " left";
  } else if (done >= total) {
    left = "  in " + format_seconds(seconds);
  }
  std::string text = fmt::format("{} {:3.0f}% |{}{}| {}/{}{}{}{}", label, part * 100,
                                 std::string(cells, '#'), std::string(kBarCells - cells, ' '), done,
                                 total, left, detail.empty() ? "" : "  ", detail);
  text.resize(std::min(text.size(), static_cast<std::size_t>(std::max(width, 0))));
  return text;
}

ProgressBar::ProgressBar(std::string label, std::int64_t total, std::chrono::seconds plain_interval)
    : label_(std::move(label)),
      total_(total),
      plain_interval_(plain_interval),
      terminal_(::isatty(STDERR_FILENO) == 1),
      start_(Clock::now()),
      drawn_(start_) {}

ProgressBar::~ProgressBar() { finish(); }

void ProgressBar::update(std::int64_t done, std::string_view detail) {
  if (first_ < 0) {
    first_ = done;
    start_ = Clock::now();
  }
  done_ = done;
  detail_ = detail;
  const auto now = Clock::now();
  const auto interval = terminal_ ? Clock::duration(kRedraw) : Clock::duration(plain_interval_);
  if (interval > Clock::duration::zero() && now - drawn_ >= interval) {
    drawn_ = now;
    draw(false);
  }
}

void ProgressBar::finish() {
  if (!finished_ && first_ >= 0 && (terminal_ || plain_interval_.count() > 0)) {
    draw(true);
  }
  finished_ = true;
}

void ProgressBar::draw(bool last) {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const std::string text = progress_text(label_, first_, done_, total_, seconds, detail_,
                                         terminal_ ? terminal_width() : 1000);
  if (terminal_) {
    std::fprintf(stderr, "\r\x1b[K%s%s", text.c_str(), last ? "\n" : "");
  } else {
    std::fprintf(stderr, "%s\n", text.c_str());
  }
  std::fflush(stderr);
}

}  // namespace trireme
