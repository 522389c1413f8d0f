#include "benchmarks/progress.h"

#include <algorithm>
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

}  // namespace trireme
