// Submits job scripts to Slurm.
#pragma once

#include <string>

namespace trireme {

// ScriptFile is a file with the script for sbatch. The destructor removes it, since sbatch keeps a
// copy.
class ScriptFile {
 public:
  explicit ScriptFile(const std::string& text);
  ~ScriptFile();
  ScriptFile(const ScriptFile&) = delete;
  ScriptFile& operator=(const ScriptFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// Returns the id of the job. after: the job whose end it waits for, or "". With test_only, submits
// nothing, prints when Slurm would start the job, and returns "". Throws ConfigError if sbatch
// refuses the job, and IoError if it does not answer.
std::string sbatch(const ScriptFile& script, const std::string& after, bool test_only);

}  // namespace trireme
