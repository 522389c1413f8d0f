#include "src/app/model/stop_strings.h"

#include <algorithm>
#include <utility>

#include "src/base/error.h"

namespace trireme {
namespace {

// Returns the length of the longest suffix of `text` that is a prefix of `stop`, but shorter than
// it.
std::size_t possible_beginning(std::string_view text, std::string_view stop) {
  std::size_t length = std::min(text.size(), stop.size() - 1);
  while (length > 0 && text.substr(text.size() - length) != stop.substr(0, length)) {
    --length;
  }
  return length;
}

}  // namespace

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  for (const std::string& stop : strings_) {
    if (stop.empty()) {
      throw ConfigError("--stop is empty: name the text at which a sample ends");
    }
  }
}

std::string StopStrings::add(std::string_view piece) {
  if (stopped_) {
    return {};
  }
  held_ += piece;
  std::size_t end = held_.size();
  for (const std::string& stop : strings_) {
    if (const std::size_t found = held_.find(stop); found != std::string::npos) {
      stopped_ = true;
      end = std::min(end, found);
    }
  }
  for (std::size_t i = 0; !stopped_ && i < strings_.size(); ++i) {
    end = std::min(end, held_.size() - possible_beginning(held_, strings_[i]));
  }
  std::string out = held_.substr(0, end);
  held_.erase(0, stopped_ ? held_.size() : end);
  return out;
}

std::string StopStrings::rest() { return std::exchange(held_, {}); }

}  // namespace trireme
