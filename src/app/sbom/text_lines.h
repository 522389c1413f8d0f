// Splits a text into its lines. Pure.
#pragma once

#include <algorithm>
#include <string_view>

namespace trireme {

// Calls use(line) for each line, without the line's end. The last one need not have an end.
template <class Use>
void for_each_line(std::string_view text, Use use) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    use(text.substr(at, end - at));
    at = end + 1;
  }
}

}  // namespace trireme
