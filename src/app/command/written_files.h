// Keeps a command from replacing a file that it reads, or from writing two results into one file.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace trireme {

// Marks an option whose value is a file that the command writes.
void mark_as_written(CLI::Option& option);

// Returns what is wrong if a file that a command shall write is also that of another option or
// argument, lies in a dataset or checkpoint, or belongs to a run, a study or an acceptance;
// otherwise "". Called after the command's line was parsed.
std::string clash_of_written_files(const CLI::App& command);

// A file that a command writes, and the option that has named it.
struct WrittenFile {
  std::string_view option;
  std::filesystem::path file;  // empty if the option is not given
};

// Throws ConfigError if one of the files is among those that the command reads without their being
// values of its options, such as files_of_config().
void check_not_read(const std::vector<WrittenFile>& written,
                    const std::vector<std::filesystem::path>& read);

// Throws ConfigError if a result would be or lie in a folder, which need not exist. Empty paths
// pass. why: what the folder is, as in "which is exported".
void check_outside_of(const WrittenFile& result, const std::filesystem::path& folder,
                      std::string_view why);

}  // namespace trireme
