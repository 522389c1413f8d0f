// Exchanges messages with rtnetlink; private to mpi/network.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace trireme {

// Calls `see` with the type, the fixed part and the attributes of each message that has a fixed
// part of `fixed_bytes`. Ends at NLMSG_DONE. Throws DataError if lengths do not fit.
void for_each_message(std::span<const std::byte> messages, std::size_t fixed_bytes,
                      const std::function<void(int type, std::span<const std::byte> fixed,
                                               std::span<const std::byte> attributes)>& see);
// Calls `see` with each attribute. Throws DataError if lengths do not fit.
void for_each_attribute(std::span<const std::byte> attributes,
                        const std::function<void(int type, std::span<const std::byte> value)>& see);

// Sends one request and returns the kernel's answer: all messages up to NLMSG_DONE for a dump
// (`flags` contains NLM_F_DUMP), otherwise one datagram. Returns nothing if the kernel answers with
// an error. Throws IoError if there is no netlink.
std::vector<std::byte> ask_kernel(int type, int flags, std::span<const std::byte> body);

}  // namespace trireme
