#include "launch/hosts_file.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "base/error.h"
#include "base/files.h"
#include "launch/batch_hosts.h"

namespace trireme {
namespace {

std::string WhatOf(const std::function<void()>& fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string Refusal(const std::string& text) {
  return WhatOf([&] { ParseHosts(text, "h"); });
}

int Own(const std::string& text, const std::vector<std::string>& names) {
  return FindOwnLine(ParseHosts(text, "h"), names, "h");
}

TEST(HostsFile, HostsPortsAndRanks) {
  const auto hosts = ParseHosts("node1:7200 4  # rank 0\n\n  node2\r\n10.0.0.3 2", "h");
  ASSERT_EQ(hosts.size(), 3u);
  EXPECT_EQ(hosts[0].address.host, "node1");
  EXPECT_EQ(hosts[0].address.port, 7200);
  EXPECT_EQ(hosts[0].ranks, 4);
  EXPECT_EQ(hosts[1].address.host, "node2");
  EXPECT_FALSE(hosts[1].address.port);
  EXPECT_EQ(hosts[1].ranks, 1);
  EXPECT_EQ(hosts[2].line, 4);
}

TEST(HostsFile, Ipv6InBracketsMayHaveAPort) {
  const auto hosts = ParseHosts("[fd00::1]:7200 2\nfd00::2\n[fd00::3]", "h");
  EXPECT_EQ(hosts[0].address.host, "fd00::1");
  EXPECT_EQ(hosts[0].address.port, 7200);
  EXPECT_EQ(hosts[1].address.host, "fd00::2");
  EXPECT_FALSE(hosts[1].address.port);
  EXPECT_EQ(hosts[2].address.host, "fd00::3");
  EXPECT_EQ(FormatAddress("fd00::1", 7200), "[fd00::1]:7200");
  EXPECT_EQ(FormatAddress("node1", 7200), "node1:7200");
}

TEST(HostsFile, NonsenseIsRefusedWithItsLine) {
  EXPECT_EQ(Refusal("# nobody\n"), "h names no host");
  EXPECT_EQ(Refusal("a 1\nb two"),
            "h:2: expected a host name and a number of ranks, got \"b two\"");
  for (const char* host : {"a:port", "a:0", "a:70000", "[::1", "[::1]7", ":7200"}) {
    EXPECT_EQ(Refusal(host),
              "h:1: \"" + std::string(host) + "\" is not HOST, HOST:PORT or [IPV6]:PORT");
  }
  EXPECT_EQ(Refusal("a\nb:7200 2"),
            "h:2: only the first host, where the ranks meet, can have a port");
  EXPECT_EQ(Refusal("a 1000\nb 1000"), "h: 2000 ranks are too many; at most 1024 are allowed");
}

TEST(HostsFile, ThisMachineIsFoundWithAndWithoutPortAndDomain) {
  const std::vector<std::string> names = {"localhost", "node2.cluster", "10.0.0.2", "fd00::2"};
  EXPECT_EQ(Own("node1\nnode2", names), 1);
  EXPECT_EQ(Own("node2:7200 2\nnode3", names), 0);
  EXPECT_EQ(Own("node1\nnode2.cluster", names), 1);
  EXPECT_EQ(Own("node1\nnode2.elsewhere", names), -1);
  EXPECT_EQ(Own("10.0.0.2:7300 2", names), 0);
  EXPECT_EQ(Own("[fd00::2]:7300 2", names), 0);
  EXPECT_EQ(Own("10.0.0.1", names), -1);
  EXPECT_EQ(Own("localhost 2", OwnNames()), 0);
  EXPECT_EQ(Own("127.0.0.1:7300 2", OwnNames()), 0);
}

// Each machine starts the ranks of one line, so those of another would never come.
TEST(HostsFile, AMachineStandsInOneLine) {
  EXPECT_EQ(Refusal("a:7200 1\nb\na 2"),
            "h:3: a is already in line 1; write one line per machine, with all of its ranks");
  EXPECT_EQ(WhatOf([] { Own("127.0.0.1:7300 1\nnode2\nlocalhost 1", OwnNames()); }),
            "h:3: localhost is this machine, and so is 127.0.0.1 in line 1; write one line per "
            "machine, with all of its ranks");
}

// The lists of PBS and LSF, with a line for each slot, and that of Grid Engine.
TEST(BatchHosts, TheListOfABatchSystemIsAHostsFile) {
  const TemporaryDirectory folder;
  std::map<std::string, std::string> variables;
  const auto read = [&] {
    return ReadBatchHosts([&](const char* name) -> const char* {
      const auto at = variables.find(name);
      return at == variables.end() ? nullptr : at->second.c_str();
    });
  };
  EXPECT_NE(WhatOf([&] { read(); }).find("PBS_NODEFILE, LSB_DJOB_HOSTFILE, PE_HOSTFILE"),
            std::string::npos);
  ReplaceFile(folder / "slots", "node1\nnode1\nnode2.cluster\n\nnode1\n");
  for (const char* name : {"PBS_NODEFILE", "LSB_DJOB_HOSTFILE"}) {
    variables = {{name, folder / "slots"}};
    EXPECT_EQ(read().text, "node1 3\nnode2.cluster 1\n") << name;
    EXPECT_EQ(ParseHosts(read().text, read().file).size(), 2u);
  }
  ReplaceFile(folder / "engine", "node1 4 all.q@node1 UNDEFINED\nnode2  2 all.q@node2 <NULL>\n");
  variables = {{"PE_HOSTFILE", folder / "engine"}};
  EXPECT_EQ(read().text, "node1 4\nnode2 2\n");
  EXPECT_EQ(read().file, folder / "engine");
  ReplaceFile(folder / "engine", "node1 4\nnode2 many\n");
  EXPECT_NE(WhatOf([&] { read(); }).find("engine:2: expected a host name and a number of slots"),
            std::string::npos);
}

}  // namespace
}  // namespace trireme
