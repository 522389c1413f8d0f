// Writes the tokens of a dataset as files of other programs, which read them without HDF5:
//
//   megatron   OUT.bin, OUT.idx           u16 or i32 tokens; each document is one sequence
//   npy        OUT.npy, OUT.offsets.npy   u16 or u32 tokens; i64 [n_docs + 1]: where documents end
//
// and OUT.loss_mask.npy, u8, if the dataset has a loss mask, and OUT.idx.label.json or
// OUT.npy.label.json if it has a label (label_file.h).
//
// `trireme data convert` reads both back, joins the label, and refuses those with a mask. All ranks
// call export_dataset() together and share the shards. The files are written under temporary names,
// and renamed when they are complete.
#pragma once

#include <filesystem>
#include <vector>

#include "io/data/dataset.h"
#include "io/data/dataset_writing.h"

namespace trireme {

enum class ArrayFormat { megatron, npy };

struct DatasetExport {
  ArrayFormat format = ArrayFormat::megatron;
  std::filesystem::path out;   // without the ends of the names
  PackProgress progress = {};  // in bytes of tokens; may be empty
};

// The files of an export: the tokens, the documents, and the loss mask and the label if there are
// any.
std::vector<std::filesystem::path> exported_files(const DatasetExport& options,
                                                  bool has_mask = false, bool has_label = false);

// dataset: the same on all ranks, and open if it is encrypted. Throws PolicyError if one of the
// files exists, and DataError if the dataset is damaged or the format cannot hold it.
void export_dataset(const Dataset& dataset, const DatasetExport& options, const RankGroup& ranks);

}  // namespace trireme
