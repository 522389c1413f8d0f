// The text files that a dataset is packed from: found once, by one rank, as a list that is the same
// for all. Values; pure functions but for the walk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct InputFile {
  std::string path;  // as it is opened
  std::string name;  // below the argument that led to it: moving a tree does not change its names
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;
  // Which file it is now, and since when: a copy of the same content has others.
  std::uint64_t inode = 0;
  std::int64_t changed_ns = 0;

  // One document a line, in a field of a JSON object; else the file is one document.
  bool is_jsonl() const;
};

struct InputFiles {
  std::vector<InputFile> files;
  std::int64_t skipped = 0;  // symbolic links, FIFOs, sockets and devices below folders
};

// Files stand for themselves, folders for all regular files below them. Version control folders are
// left out, and what is skipped is counted. `exclude`: shell patterns, for a name or its last part.
// `not_in` is left out: the output, when it lies among the inputs. Sorted by path, each once.
// NotFound for an argument that is not there.
InputFiles find_input_files(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& exclude,
                            const std::filesystem::path& not_in);

// Whether the file still is the one that was listed, and has not been written to.
bool is_unchanged(const InputFile& file);

// A list as text, to be sent to other ranks, and back. Names may hold any byte but NUL.
std::string input_files_text(const InputFiles& inputs);
InputFiles parse_input_files(std::string_view text);

}  // namespace trireme
