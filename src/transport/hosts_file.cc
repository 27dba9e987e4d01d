#include "transport/hosts_file.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr int kMostRanks = 1024;
std::string_view WithoutDomain(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

std::vector<HostLine> ParseHosts(std::string_view text, const std::string& file) {
  std::vector<HostLine> hosts;
  int number = 0, total = 0;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    line = line.substr(0, line.find('#'));
    std::vector<std::string> words;
    for (size_t i = 0; i < line.size();) {
      const size_t begin = line.find_first_not_of(" \t\r", i);
      if (begin == std::string_view::npos) break;
      i = std::min(line.find_first_of(" \t\r", begin), line.size());
      words.emplace_back(line.substr(begin, i - begin));
    }
    if (words.empty()) continue;
    HostLine host{.name = words[0]};
    if (words.size() > 1) {
      const auto ranks = ParseNumber<int>(words[1]);
      if (!ranks || *ranks < 1 || *ranks > kMostRanks || words.size() > 2) {
        throw Error("{}:{}: expected a host name and a number of ranks, got \"{}\"", file, number,
                    line);
      }
      host.ranks = *ranks;
    }
    total += host.ranks;
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) throw Error("{}: names no host", file);
  if (total > kMostRanks) throw Error("{}: {} ranks; at most {}", file, total, kMostRanks);
  return hosts;
}

int FindOwnLine(const std::vector<HostLine>& hosts, const std::vector<std::string>& own_names) {
  const auto is_own = [&](const HostLine& host) {
    return std::any_of(own_names.begin(), own_names.end(), [&](const std::string& own) {
      if (host.name == own) return true;
      const bool address = own.find_first_not_of("0123456789.:abcdef%") == std::string::npos;
      return !address && WithoutDomain(host.name) == WithoutDomain(own);
    });
  };
  const auto found = std::find_if(hosts.begin(), hosts.end(), is_own);
  return found == hosts.end() ? -1 : int(found - hosts.begin());
}

std::vector<std::string> OwnNames() {
  std::vector<std::string> names;
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) == 0) names.emplace_back(name);
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
