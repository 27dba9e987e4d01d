#include "launch/hosts_file.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <ifaddrs.h>
#include <netdb.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/machine.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr int kMostRanks = 1024;

// node1 is node1.cluster; node1.here is not node1.there.
bool SameName(std::string_view a, std::string_view b) {
  if (a.find('.') != a.npos && b.find('.') != b.npos) return a == b;
  return a.substr(0, a.find('.')) == b.substr(0, b.find('.'));
}

std::vector<std::string> WordsOf(std::string_view line) {
  std::vector<std::string> words;
  for (size_t i = 0; i < line.size();) {
    const size_t begin = line.find_first_not_of(" \t\r", i);
    if (begin == std::string_view::npos) break;
    i = std::min(line.find_first_of(" \t\r", begin), line.size());
    words.emplace_back(line.substr(begin, i - begin));
  }
  return words;
}

HostLine ParseLine(const std::vector<std::string>& words) {
  HostLine host;
  const auto address = ParseAddress(words[0]);
  if (!address || address->port == 0)
    throw Error("\"{}\" is not HOST, HOST:PORT or [IPV6]:PORT", words[0]);
  host.address = *address;
  if (words.size() == 1) return host;
  const auto ranks = ParseNumber<int>(words[1]);
  if (!ranks || *ranks < 1 || *ranks > kMostRanks || words.size() > 2) {
    throw Error("expected a host name and a number of ranks, got \"{}\"", fmt::join(words, " "));
  }
  host.ranks = *ranks;
  return host;
}

void CheckAgainst(const std::vector<HostLine>& before, const HostLine& host) {
  for (const HostLine& other : before) {
    if (other.address.host != host.address.host) continue;
    throw Error("{} is already in line {}; write one line per machine, with all of its ranks",
                host.address.host, other.line);
  }
  if (!before.empty() && host.address.port) {
    throw Error("only the first host, where the ranks meet, can have a port");
  }
}

bool IsOwn(const HostLine& host, const std::vector<std::string>& own_names) {
  const std::string& name = host.address.host;
  return std::any_of(own_names.begin(), own_names.end(), [&](const std::string& own) {
    if (name == own) return true;
    const bool number = own.find_first_not_of("0123456789.:abcdef%") == std::string::npos;
    return !number && SameName(name, own);
  });
}

}  // namespace

std::vector<HostLine> ParseHosts(std::string_view text, const std::string& file) {
  std::vector<HostLine> hosts;
  int number = 0, total = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    const std::vector<std::string> words = WordsOf(line.substr(0, line.find('#')));
    if (words.empty()) continue;
    try {
      HostLine host = ParseLine(words);
      CheckAgainst(hosts, host);
      host.line = number;
      total += host.ranks;
      hosts.push_back(std::move(host));
    } catch (const Error& error) {
      throw Error("{}:{}: {}", file, number, error.what());
    }
  }
  if (hosts.empty()) throw Error("{} names no host", file);
  if (total > kMostRanks)
    throw Error("{}: {} ranks are too many; at most {} are allowed", file, total, kMostRanks);
  return hosts;
}

int FindOwnLine(const std::vector<HostLine>& hosts, const std::vector<std::string>& own_names,
                const std::string& file) {
  int found = -1;
  for (int i = 0; i < int(hosts.size()); ++i) {
    if (!IsOwn(hosts[size_t(i)], own_names)) continue;
    if (found >= 0) {
      throw Error(
          "{}:{}: {} is this machine, and so is {} in line {}; write one line per machine, with "
          "all of its ranks",
          file, hosts[size_t(i)].line, hosts[size_t(i)].address.host,
          hosts[size_t(found)].address.host, hosts[size_t(found)].line);
    }
    found = i;
  }
  return found;
}

std::vector<std::string> OwnNames() {
  std::vector<std::string> names = {"localhost"};
  if (std::string name = HostName(); !name.empty()) names.push_back(std::move(name));
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return names;
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  for (const ifaddrs* i = list; i; i = i->ifa_next) {
    if (!i->ifa_addr) continue;
    const int family = i->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    const socklen_t size = family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
    char address[NI_MAXHOST];
    if (getnameinfo(i->ifa_addr, size, address, sizeof(address), nullptr, 0, NI_NUMERICHOST) == 0) {
      names.emplace_back(address);
    }
  }
  return names;
}

}  // namespace trireme
