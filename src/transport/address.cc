#include "transport/address.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace trireme {

std::optional<Address> ParseAddress(std::string_view text) {
  std::string_view host = text, port;
  const bool brackets = text.starts_with('[');
  if (brackets) {
    const size_t close = text.find(']');
    if (close == text.npos) return std::nullopt;
    host = text.substr(1, close - 1);
    port = text.substr(close + 1);
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    host = text.substr(0, text.find(':'));
    port = text.substr(host.size());
  }
  if (host.empty()) return std::nullopt;
  if (port.empty()) return Address{std::string(host), {}};
  const auto number = port[0] == ':' ? ParseNumber<uint16_t>(port.substr(1)) : std::nullopt;
  if (!number) return std::nullopt;
  return Address{std::string(host), number};
}

std::string FormatAddress(std::string_view host, int port) {
  const bool brackets = host.find(':') != host.npos;
  return brackets ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace trireme
