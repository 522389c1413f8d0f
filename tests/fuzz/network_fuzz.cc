// Reads any bytes as a list of sockets in /proc, as messages of rtnetlink, as a network and as the
// rule security.transport.
#include <span>

#include "mpi/network/interfaces.h"
#include "mpi/network/sockets.h"
#include "mpi/network/transport_rule.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view text = text_of(data, bytes);
  refuses_only_with<DataError>([&] {
    for (const SocketEntry& socket : parse_sockets(text)) {
      require(parse_address(socket.local.text()) == socket.local);
    }
  });
  const auto messages = std::as_bytes(std::span(data, bytes));
  refuses_only_with<DataError>([&] {
    std::vector<NetworkInterface> interfaces;
    read_links(messages, interfaces);
    read_addresses(messages, interfaces);
  });
  refuses_only_with<DataError>([&] { (void)read_route(messages); });
  if (const std::optional<Network> network = parse_network(text)) {
    require(parse_network(network->text()) == network && network->contains(network->base));
  }
  refuses_only_with<ConfigError>([&] {
    const TransportRule rule = parse_transport_rule(text, {});
    require(rule.text() == text);
  });
  refuses_only_with<ConfigError>([&] { (void)parse_transport_rule("any", {std::string(text)}); });
  return 0;
}
