#include "src/app/site/sbatch.h"

#include <cerrno>
#include <chrono>
#include <filesystem>

#include <fmt/core.h>
#include <unistd.h>

#include "slurm/render/shell_words.h"
#include "src/base/command.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/temporary_folder.h"

namespace trireme {
namespace {

constexpr std::chrono::seconds kPatience{60};

}  // namespace

ScriptFile::ScriptFile(const std::string& text) {
  std::string path = (temporary_folder() / "trireme-job-XXXXXX").string();
  const int fd = ::mkstemp(path.data());
  if (fd < 0) {
    throw_errno(errno, "create", path);
  }
  ::close(fd);
  path_ = path;
  write_file_durably(path_, text);
}

ScriptFile::~ScriptFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

std::string sbatch(const ScriptFile& script, const std::string& after, bool test_only) {
  std::vector<std::string> argv = {"sbatch", "--parsable"};
  if (test_only) {
    argv.emplace_back("--test-only");
  }
  if (!after.empty()) {
    argv.push_back("--dependency=afterany:" + sbatch_value("--after", after));
  }
  argv.push_back(script.path());
  const CommandResult result = run_command(argv, kPatience);
  if (!result.good()) {
    const std::string text = fmt::format(
        "{}. {}. Check that this is a login node and that --cluster is the right profile",
        result.complaint("sbatch"),
        result.late ? "squeue shows whether the job was accepted" : "No job was submitted");
    if (result.late) {
      throw IoError(text);
    }
    throw ConfigError(text);
  }
  if (test_only) {
    fmt::print("{}", printable_lines(result.errors));
    return "";
  }
  return result.output.substr(0, result.output.find_first_of(";\n"));
}

}  // namespace trireme
