// Plans a pack: decides which piece of which file goes to which shard. A pure function of the list
// of files and the options, the same on every rank and for any number of ranks.
//
// A piece is a range of bytes of a file; the lines that start in it belong to it. A file is one
// piece, unless it is longer than a shard or is jsonl and does not fit into the rest of a shard.
// Compressed files and archives can only be read from their beginning, and are always one piece.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/data/input_files.h"

namespace trireme {

struct TextPiece {
  std::size_t file = 0;  // index into the list of files
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

// Says which documents a dataset takes: all, or those on one side of the train/validation split.
struct Selection {
  enum class Part { all, train, validation };
  Part part = Part::all;
  double validation_fraction = 0;

  // Returns a document's pseudo-random position in [0, 1), computed from its file's name and its
  // first byte's offset.
  static double position(std::string_view name, std::int64_t start);
  // Returns whether the dataset takes the document. Documents at positions below
  // validation_fraction go to validation.
  bool takes(std::string_view name, std::int64_t start) const;
  // Returns the expected share of the text that the dataset takes.
  double share() const;
};

struct TextShard {
  std::vector<TextPiece> pieces;
  std::int64_t input_bytes() const;
};

// text_bytes: the amount of text that fills a shard.
std::vector<TextShard> plan_shards(const std::vector<InputFile>& files, const Selection& selection,
                                   std::int64_t text_bytes);

// Plans to read whole documents: no text file is cut, only lines of jsonl are. unit_bytes: the
// amount of text of a part.
std::vector<TextShard> plan_reading(const std::vector<InputFile>& files, std::int64_t unit_bytes);

}  // namespace trireme
