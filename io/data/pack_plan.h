// The plan of a pack: which piece of which file goes to which shard. A pure function of the list of
// files and the options, the same on every rank and for every number of ranks.
//
// A piece is a range of bytes of a file and owns the lines that start in it. A file is one piece
// unless it is longer than a shard, or is jsonl and meets the end of a shard.
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

// Which documents a dataset takes: all, or one side of a split by document.
struct Selection {
  enum class Part { all, train, validation };
  Part part = Part::all;
  double validation_fraction = 0;

  // A document's place in [0, 1), from the name of its file and the byte where it starts.
  static double position(std::string_view name, std::int64_t start);
  // Validation takes the documents whose position is below its fraction.
  bool takes(std::string_view name, std::int64_t start) const;
  // About which part of the text is taken.
  double share() const;
};

struct TextShard {
  std::vector<TextPiece> pieces;
  std::int64_t input_bytes() const;
};

// text_bytes: how much text fills a shard.
std::vector<TextShard> plan_shards(const std::vector<InputFile>& files, const Selection& selection,
                                   std::int64_t text_bytes);

}  // namespace trireme
