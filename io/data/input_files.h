// Lists the text files from which a dataset is packed. One rank does so once, so that all ranks
// work from the same list. Values and pure functions, except for find_input_files(), which reads
// folders.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "io/archive/decompression.h"

namespace trireme {

struct InputFile {
  std::string path;  // path to open
  // Path relative to the argument that led to it, so that moving a tree does not change it.
  std::string name;
  std::int64_t bytes = 0;
  std::int64_t modified_ns = 0;
  // Inode number and status change time: a copy with the same content has others.
  std::uint64_t inode = 0;
  std::int64_t changed_ns = 0;

  Compression compression() const { return compression_of(path); }
  // The name of what the file holds, so that compressing a file changes no split.
  std::string name_of_text() const { return name_inside(name); }
  // Returns whether each line is a document in a field of a JSON object. Compressed .json files are
  // read so, too, because large collections of text use this name for them.
  bool is_jsonl() const;
  // Returns whether members are documents.
  bool is_archive() const;
  // Returns whether the whole file is one document, which may be cut where a shard is full.
  bool is_plain_text() const;
};

struct InputFiles {
  std::vector<InputFile> files;
  std::int64_t skipped = 0;  // symbolic links, FIFOs, sockets and devices below folders
};

// Returns the folder of the dataset whose shard, or folder of shards, the path leads to, links
// followed. Empty if there is none.
std::filesystem::path dataset_with(const std::filesystem::path& path);

// Lists the arguments that are files, and all regular files below those that are folders, sorted by
// path and without duplicates. Leaves out version control folders, names that match a shell pattern
// in `exclude` (as a whole or in their last part), other datasets, and `not_in`, the output, which
// may lie among the inputs, or is empty. Throws NotFound if an argument does not exist, and
// ConfigError if it is a dataset.
InputFiles find_input_files(const std::vector<std::string>& arguments,
                            const std::vector<std::string>& exclude,
                            const std::filesystem::path& not_in);

// Returns whether the file is still the one that was listed and has not been written to.
bool is_unchanged(const InputFile& file);
// Returns whether not even the file's status has changed: a writer can set the other times back.
bool is_untouched(const InputFile& file);

// Serializes a list for sending it to other ranks. Names may hold any byte but NUL.
std::string input_files_text(const InputFiles& inputs);
InputFiles parse_input_files(std::string_view text);

}  // namespace trireme
