// Finds documents that repeat earlier ones. All ranks call these functions together; the result
// depends neither on their number nor on how the documents are divided among them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "io/data/dataset_writing.h"
#include "io/data/document_keys.h"
#include "io/data/text_reading.h"

namespace trireme {

enum class Deduplication { none, exact, minhash };

struct KeyedDocument {
  DocumentKey key;
  DocumentPlace place;
};

// Returns the places of all documents with a key that a document at an earlier place has, too, in
// order. mine: of this rank. Memory: each rank keeps its part of the keys, 32 bytes for each.
std::vector<DocumentPlace> find_repeated(std::vector<KeyedDocument> mine, const RankGroup& ranks);

// DuplicateSearch collects the keys of this rank's documents. Memory: 32 bytes for each document if
// only equal ones are sought, and 480 with nearly equal ones.
class DuplicateSearch {
 public:
  DuplicateSearch(bool seeks_equal, bool seeks_near)
      : seeks_equal_(seeks_equal), seeks_near_(seeks_near), keys_(1 + kKeyBands) {}

  // Call these in turn for each document: take() for its parts.
  void begin(const DocumentPlace& place);
  void take(std::string_view part);
  void end();

  // These two are collective, and end the search for what they return: call each once.
  std::vector<DocumentPlace> find_equal(const RankGroup& ranks);
  // Documents that share a key of MinHash with an earlier one.
  std::vector<DocumentPlace> find_near(const RankGroup& ranks);

 private:
  bool seeks_equal_;
  bool seeks_near_;
  DocumentPlace place_;
  EqualityKey equality_;
  MinHash near_;
  std::vector<std::vector<KeyedDocument>> keys_;  // those of equality, then those of each band
};

// Reads the inputs and returns the documents to leave out, in order: those that repeat an earlier
// one, which stays. progress: as of write_dataset().
std::vector<DocumentPlace> find_duplicates(const TextInputs& inputs, Deduplication deduplication,
                                           const RankGroup& ranks, const PackProgress& progress);

}  // namespace trireme
