// What the subcommands of `trireme registry` do once their options are read.
#pragma once

#include <string>
#include <vector>

#include "src/policy/access.h"

namespace trireme {

struct RegistryOptions {
  std::string registry = "registry";
  std::string model;              // a name, or a reference such as chat:3
  std::string path;               // of the model's files
  std::string stage;              // empty if not given
  std::string note;               // or the reason
  std::string result;             // file of `trireme eval -J`; empty for none
  std::string weights = "plain";  // which weights the result has to be of
  std::vector<std::string> where;
  bool unchecked = false;
  bool quick = false;
  bool despite_gates = false;
  bool json = false;
};

void add_version(const RegistryOptions& options, const AccessSource& access);
void list_versions(const RegistryOptions& options, int& exit_code);
void show_version(const RegistryOptions& options);
void print_model_path(const RegistryOptions& options, const AccessSource& access);
void promote_version(const RegistryOptions& options, const AccessSource& access, int& exit_code);
void roll_back_stage(const RegistryOptions& options, const AccessSource& access);
void check_versions(const RegistryOptions& options, const AccessSource& access, int& exit_code);

}  // namespace trireme
