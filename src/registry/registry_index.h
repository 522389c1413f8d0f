// RegistryIndex answers questions about all versions in a registry without reading all records: an
// SQLite database beside them, which is brought up to date when it is opened. If it is missing,
// damaged or foreign, it is made anew; if it cannot be written, it is made in memory. It is never
// believed where a model is used: ModelRegistry::find() reads the records. For one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/registry/model_registry.h"

namespace trireme {

struct ListedVersion {
  VersionRecord record;
  std::vector<std::string> stages;  // at which it is in use, sorted
};

// A condition on a figure of the evaluation, such as loss<=2.1.
struct FigureBound {
  std::string figure;
  std::string relation;  // <, <=, >, >= or =
  double value = 0;
  // Throws ConfigError for any other text.
  static FigureBound parse(const std::string& text);
};

struct RegistryQuery {
  std::string model;  // empty for all
  std::string stage;  // empty for all
  std::vector<FigureBound> bounds = {};
};

class RegistryIndex {
 public:
  explicit RegistryIndex(const ModelRegistry& registry);
  ~RegistryIndex();
  RegistryIndex(const RegistryIndex&) = delete;
  RegistryIndex& operator=(const RegistryIndex&) = delete;

  // Sorted by model and version.
  std::vector<ListedVersion> versions(const RegistryQuery& query) const;
  // Records that are damaged, which no answer contains: a sentence each.
  const std::vector<std::string>& problems() const { return problems_; }
  // Why the database is not kept beside the records; empty if it is.
  const std::string& why_in_memory() const { return why_in_memory_; }

 private:
  class Database;
  void update(Database& database);
  void update_versions(Database& database, const std::string& model);
  void update_stages(Database& database, const std::string& model);

  const ModelRegistry& registry_;
  std::unique_ptr<Database> database_;
  std::vector<std::string> problems_;
  std::string why_in_memory_;
};

}  // namespace trireme
