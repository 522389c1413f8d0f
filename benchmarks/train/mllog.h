// MlLog collects the lines of a log of MLPerf Training (github.com/mlcommons/logging):
//   :::MLLOG {"namespace", "time_ms", "event_type", "key", "value", "metadata"}
// Owned by the benchmark, used by one thread.
#pragma once

#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace trireme {

struct MlLogOptions {
  std::filesystem::path file;
  // What MLPerf's log says about a submission.
  std::string benchmark;
  std::string org;
  std::string platform;
};

class MlLog {
 public:
  using Json = nlohmann::ordered_json;

  // Logs the submission, in the open division.
  void describe(const MlLogOptions& options);
  void event(const std::string& key, const Json& value, Json metadata = Json::object()) {
    add("POINT_IN_TIME", key, value, std::move(metadata));
  }
  void start(const std::string& key, Json metadata = Json::object()) {
    add("INTERVAL_START", key, nullptr, std::move(metadata));
  }
  void stop(const std::string& key, Json metadata = Json::object()) {
    add("INTERVAL_END", key, nullptr, std::move(metadata));
  }
  const std::string& text() const { return text_; }

 private:
  void add(const char* type, const std::string& key, const Json& value, Json metadata);

  std::string text_;
  int line_ = 0;
};

}  // namespace trireme
