// Reads any bytes as NCCL's log, in one part and in two: no link is lost or added by a cut between
// lines. Then reads them as the text of a LinkBook, which gives one that survives a round trip, or
// a DataError.
#include <algorithm>

#include "mpi/links/link_book.h"
#include "mpi/links/nccl_log_parser.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view text = text_of(data, bytes);
  const NcclConnections whole = NcclLogParser().parse(text);
  for (const Link& link : whole.links) {
    require(link.from >= 0 && link.to >= 0);
    require(!link.gpu_direct || is_network(link.kind));
    require(parse_link_kind(name_of(link.kind)) == link.kind);
  }
  require(whole.nvls_channels >= 0 && whole.warnings.size() <= NcclLogParser::kMostWarnings);
  const std::size_t cut = text.find('\n', bytes / 2);
  if (cut != std::string_view::npos) {
    NcclLogParser parser;
    const std::size_t first = parser.parse(text.substr(0, cut + 1)).links.size();
    const std::size_t second = parser.parse(text.substr(cut + 1)).links.size();
    require(first <= whole.links.size() && whole.links.size() <= first + second);
  }
  refuses_only_with<DataError>([&] {
    const LinkBook book = parse_link_book(text);
    require(parse_link_book(to_text(book)).links.size() == book.links.size());
  });
  return 0;
}
