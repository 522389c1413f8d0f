// Parses any bytes as a file of wrapped keys, which gives keys that survive a round trip, or a
// DataError. A valid seal is added first, because the parser refuses everything else at once. The
// parameters of passphrases are parsed as well, but no key is derived. Also parses the bytes as the
// list of revoked keys, and as the identity of a start.
#include "src/base/sealed_json.h"
#include "src/keys/key_ring.h"
#include "src/keys/log_starts.h"
#include "src/keys/revoked_keys.h"
#include "src/keys/scrypt.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string body(text_of(data, bytes));
  refuses_only_with<DataError>([&] { (void)parse_wrapped_keys(body, "input"); });
  refuses_only_with<DataError>([&] {
    const WrappedKeys keys = parse_wrapped_keys(seal_body(body), "input");
    const std::string text = to_text(keys);
    require(to_text(parse_wrapped_keys(text, "text")) == text);
    (void)recipients_text(keys);
    for (const Recipient& recipient : keys.recipients) {
      refuses_only_with<DataError>([&] {
        const ScryptParameters parameters = parse_scrypt(recipient.parameters);
        require(parse_scrypt(to_json(parameters)) == parameters);
        require((std::int64_t{128} * parameters.r << parameters.log2_n) <= std::int64_t{1} << 30);
      });
    }
  });
  refuses_only_with<DataError>(
      [&] { require(contents_of(parse_log_contents(body, "key")) == body); });
  refuses_only_with<PolicyError>([&] {
    std::string lines;
    const std::vector<RevokedKey> revoked = parse_revoked_keys(body, "input");
    for (const RevokedKey& each : revoked) {
      lines += each.key + " " + each.reason + "\n";
      require(find_revoked(revoked, each.key) != nullptr);
    }
    require(parse_revoked_keys(lines, "text").size() == revoked.size());
  });
  return 0;
}
