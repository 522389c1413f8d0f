#include "benchmarks/progress.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include <fmt/core.h>

#include "src/base/say.h"
#include "src/base/terminal.h"

namespace trireme {

BenchProgress::BenchProgress(std::string name, std::int64_t parts, bool speaks)
    : name_(std::move(name)), parts_(parts) {
  if (speaks) {
    bar_.emplace(name_, parts, std::chrono::seconds(10));
  }
}

void BenchProgress::stage(const std::string& what) {
  if (!bar_) {
    return;
  }
  stage_ = what;
  if (terminal_columns() == 0) {
    say(fmt::format("{}: {}", name_, what));
  }
  bar_->update(done_, stage_);
}

void BenchProgress::done() {
  done_ = std::min(done_ + 1, parts_);
  if (bar_) {
    bar_->update(done_, stage_);
  }
}

void BenchProgress::finish() { bar_.reset(); }

TableProgress::TableProgress(std::string name, std::int64_t parts, bool speaks, double seconds)
    : speaks_(speaks),
      total_(seconds > 0 ? static_cast<std::int64_t>(std::ceil(seconds)) : parts),
      counts_seconds_(seconds > 0) {
  if (speaks) {
    bar_.emplace(std::move(name), total_);
  }
}

TableProgress::~TableProgress() {
  if (bar_) {
    bar_->hide();
  }
}

std::int64_t TableProgress::passed() const {
  return std::min(counts_seconds_ ? static_cast<std::int64_t>(watch_.seconds()) : done_, total_);
}

void TableProgress::measuring(const std::string& what) {
  if (bar_) {
    bar_->update(passed(), what);
  }
}

void TableProgress::print(const std::string& text) {
  if (speaks_) {
    bar_->hide();
    fmt::print("{}", text);
    std::fflush(stdout);
  }
}

}  // namespace trireme
