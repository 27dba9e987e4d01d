#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

constexpr int kPort = 7117;  // where rank 0 is found, if nobody says otherwise

// A host by name or number, and perhaps a port: node1, node1:7200, 10.0.0.1:7200, [fe80::1]:7200.
struct Address {
  std::string host;  // without brackets
  std::optional<uint16_t> port;
  bool is_ipv6() const { return host.find(':') != host.npos; }  // a number, no name
};

// Nothing: it is neither. An IPv6 number without brackets has no port.
std::optional<Address> ParseAddress(std::string_view text);

std::string FormatAddress(std::string_view host, int port);  // with brackets where they are needed

}  // namespace trireme
