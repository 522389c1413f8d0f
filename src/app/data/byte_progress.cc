#include "src/app/data/byte_progress.h"

#include "src/base/units.h"

namespace trireme {

void ByteProgress::operator()(std::int64_t done, std::int64_t total) {
  if (!shown_) {
    return;
  }
  if (bar_ == nullptr || total != total_) {
    bar_ = std::make_shared<ProgressBar>(label_, total, std::chrono::seconds(10));
    total_ = total;
  }
  bar_->update(done, format_bytes(done));
  if (done >= total) {
    bar_->finish();
  }
}

}  // namespace trireme
