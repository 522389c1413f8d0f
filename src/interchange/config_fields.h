// ConfigFields reads the fields of a foreign configuration strictly: finish() refuses every field
// that no call has asked for. All calls throw DataError that names the field. One thread.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

namespace trireme {

class ConfigFields {
 public:
  // object: must outlive this. prefix: stands before the names of fields in errors.
  explicit ConfigFields(const nlohmann::json& object, std::string prefix = "")
      : object_(object), prefix_(std::move(prefix)) {}

  // Returns the field, or null if it is missing or null.
  const nlohmann::json* find(const char* name);
  // Returns whether the field is there, even as null, for fields whose absence means a value.
  bool has(const char* name) const { return object_.contains(name); }
  // Return the field. Without a value to use otherwise, it must be there.
  std::int64_t count(const char* name, std::optional<std::int64_t> otherwise = std::nullopt);
  double real(const char* name, std::optional<double> otherwise = std::nullopt);
  bool flag(const char* name, bool otherwise);  // null is false
  std::string text(const char* name, std::optional<std::string> otherwise = std::nullopt);
  // Refuses any value but this one; the field may be missing, or null unless the value is true.
  void must_be(const char* name, const nlohmann::json& value);
  // Accepts fields without an effect on the logits.
  void ignore(std::initializer_list<const char*> names);
  // Throws DataError that lists the fields that nothing has asked for.
  void finish() const;

 private:
  const nlohmann::json& object_;
  std::string prefix_;
  std::set<std::string> known_;
};

}  // namespace trireme
