// EnvironmentVariables changes environment variables of the process and restores them when it is
// destroyed. No other thread may read the environment meanwhile.
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace trireme {

class EnvironmentVariables {
 public:
  EnvironmentVariables() = default;
  ~EnvironmentVariables() {
    for (const auto& [name, value] : before_) {
      change(name, value);
    }
  }
  EnvironmentVariables(const EnvironmentVariables&) = delete;
  EnvironmentVariables& operator=(const EnvironmentVariables&) = delete;

  // Removes the variable if there is no value.
  void set(const std::string& name, const std::optional<std::string>& value) {
    const char* const now = std::getenv(name.c_str());
    before_.try_emplace(name, now == nullptr ? std::nullopt : std::optional<std::string>(now));
    change(name, value);
  }

 private:
  static void change(const std::string& name, const std::optional<std::string>& value) {
    value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }

  std::map<std::string, std::optional<std::string>> before_;
};

}  // namespace trireme
