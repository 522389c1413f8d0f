#include "src/plan/simulate/job_stragglers.h"

#include <algorithm>
#include <limits>

namespace trireme {
namespace {

constexpr double kNotAtAll = std::numeric_limits<double>::infinity();

}  // namespace

void JobStragglers::begin(std::int64_t node, double now) {
  const double noticed = model_.replace ? now + 60 * model_.notice_minutes : kNotAtAll;
  slow_.push_back({node, now + 3600 * model_.hours, noticed});
}

void JobStragglers::remove(std::int64_t node) {
  std::erase_if(slow_, [node](const Slow& slow) { return slow.node == node; });
}

void JobStragglers::end_recovered(double now) {
  std::erase_if(slow_, [now](const Slow& slow) { return slow.until <= now; });
}

double JobStragglers::next_event() const {
  double at = kNotAtAll;
  for (const Slow& slow : slow_) {
    at = std::min({at, slow.until, slow.noticed_at});
  }
  return at;
}

std::optional<std::int64_t> JobStragglers::noticed(double now) const {
  for (const Slow& slow : slow_) {
    if (slow.noticed_at <= now) {
      return slow.node;
    }
  }
  return std::nullopt;
}

void JobStragglers::tolerate(std::int64_t node) {
  for (Slow& slow : slow_) {
    if (slow.node == node) {
      slow.noticed_at = kNotAtAll;
    }
  }
}

}  // namespace trireme
