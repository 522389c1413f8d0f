// The style sheet and the script of a report's page, from src/report/assets.
#pragma once

#include <string_view>

namespace trireme {

extern const std::string_view kReportStyle;
extern const std::string_view kReportScript;

}  // namespace trireme
