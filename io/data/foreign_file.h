// ForeignFile is a file with tokens that another program wrote, open for reading: HDF5 (.h5,
// .hdf5), an index of Megatron-LM with the tokens beside it (.idx, .bin), or an array of NumPy
// (.npy). Files are not trusted. For one thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/foreign_array.h"
#include "io/data/input_files.h"

namespace trireme {

struct ForeignInput {
  InputFile file;
  // PREFIX.bin of an index of Megatron-LM, or NAME.offsets.npy of NAME.npy, if there is one: where
  // documents end (document_ends.h).
  std::optional<InputFile> beside;
};

// The names of HDF5 datasets.
struct ForeignNames {
  std::string tokens;
  std::string offsets;  // empty: /doc_offsets, if there is one
};

class ForeignFile {
 public:
  virtual ~ForeignFile() = default;
  virtual ForeignArray& tokens() = 0;
  // Returns where documents end (document_ends.h), or null if the file is one document.
  virtual ForeignArray* offsets() = 0;
  // Reads all that the file says about documents. Throws DataError unless they fill the tokens.
  virtual void check_documents() = 0;
  // Returns the loss mask that belongs to the tokens, or takes their place; "" if there is none.
  virtual std::string loss_mask() const = 0;
  // Returns the name of a token's place, for messages.
  virtual std::string place_of(std::int64_t token) const = 0;
};

// Throws DataError if the file is not what its name says, or does not hold all that it claims.
std::unique_ptr<ForeignFile> open_foreign_file(const ForeignInput& input,
                                               const ForeignNames& names);

// Returns the paths of files of tokens beside which a label may lie (label_file.h): that of the
// input, and those to which links in its place lead.
std::vector<std::string> places_of_label(const ForeignInput& input);

// Returns whether a file is read as HDF5, by the end of its name.
bool is_hdf5(std::string_view path);
// Returns the paths to list for an argument of the command: a prefix of Megatron-LM stands for its
// two files, and each of them for both.
std::vector<std::string> foreign_arguments(const std::vector<std::string>& arguments);
// Finds the files that are read, and those beside them, in a list sorted by path. Throws DataError
// for an index without tokens.
std::vector<ForeignInput> foreign_inputs(const std::vector<InputFile>& files);

}  // namespace trireme
