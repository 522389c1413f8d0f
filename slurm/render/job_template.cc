#include "slurm/render/job_template.h"

#include <vector>

#include <fmt/core.h>

#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::string_view kOpen = "{{";
constexpr std::string_view kClose = "}}";
constexpr std::string_view kControl = "#? ";

class Filling {
 public:
  Filling(std::string_view text, const TemplateValues& values) : text_(text), values_(values) {}

  std::string run() {
    while (!text_.empty()) {
      ++line_;
      const std::size_t end = text_.find('\n');
      const std::string_view line = text_.substr(0, end);
      text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
      if (line.starts_with(kControl)) {
        control(line.substr(kControl.size()));
      } else if (shown()) {
        plain(line);
      }
    }
    if (!shown_.empty()) {
      refuse("an 'if' has no 'end'");
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InternalError(fmt::format("job template, line {}: {}", line_, why));
  }

  bool shown() const {
    for (const bool each : shown_) {
      if (!each) {
        return false;
      }
    }
    return true;
  }

  const std::string& value(std::string_view name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) {
      refuse(fmt::format("unknown name '{}'", name));
    }
    return found->second;
  }

  void control(std::string_view words) {
    if (words.starts_with("if ")) {
      shown_.push_back(!value(words.substr(3)).empty());
    } else if (shown_.empty()) {
      refuse(fmt::format("'{}' without an 'if'", words));
    } else if (words == "else") {
      shown_.back() = !shown_.back();
    } else if (words == "end") {
      shown_.pop_back();
    } else {
      refuse(fmt::format("'{}' is neither if, else nor end", words));
    }
  }

  // Fills in one line in a single pass, so that values which look like placeholders remain text.
  void plain(std::string_view line) {
    std::string filled;
    bool placeholders_only = !line.empty();
    while (true) {
      const std::size_t open = line.find(kOpen);
      const std::string_view before = line.substr(0, open);
      placeholders_only = placeholders_only && before.find_first_not_of(" \\") == before.npos;
      filled += before;
      if (open == std::string_view::npos) {
        break;
      }
      const std::size_t close = line.find(kClose, open);
      if (close == std::string_view::npos) {
        refuse("'{{' without '}}'");
      }
      filled += value(line.substr(open + kOpen.size(), close - open - kOpen.size()));
      line.remove_prefix(close + kClose.size());
    }
    if (placeholders_only && filled.find_first_not_of(" \\") == std::string::npos) {
      return;
    }
    out_ += filled;
    if (!filled.ends_with('\n')) {
      out_ += '\n';
    }
  }

  std::string_view text_;
  const TemplateValues& values_;
  int line_ = 0;
  std::vector<bool> shown_;
  std::string out_;
};

}  // namespace

std::string fill_template(std::string_view text, const TemplateValues& values) {
  return Filling(text, values).run();
}

}  // namespace trireme
