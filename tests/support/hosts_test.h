#pragma once
#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "support/ranks_test.h"

namespace trireme::whole {

inline bool Works(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

// Two machines: network namespaces with addresses of their own, a virtual cable between them that
// can be cut, a hosts file and a secret.
class RanksHostsTest : public RanksTest {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "network namespaces need root";
    if (!Works("ip -V")) GTEST_SKIP() << "there is no ip (package iproute2)";
    for (int h = 0; h < 2; ++h) names_[h] = fmt::format("trireme-w{}-{}", getpid(), h);
    const std::string make = fmt::format(
        "ip netns add {0} && ip netns add {1} && "
        "ip -n {0} link add v0 type veth peer name v1 netns {1} && "
        "ip -n {0} addr add 10.78.0.1/24 dev v0 && ip -n {1} addr add 10.78.0.2/24 dev v1 && "
        "ip -n {0} link set v0 up && ip -n {1} link set v1 up && "
        "ip -n {0} link set lo up && ip -n {1} link set lo up",
        names_[0], names_[1]);
    if (!Works(make)) GTEST_SKIP() << "network namespaces cannot be made here";
    Write("hosts", "10.78.0.1 2  # rank 0 and 1\n10.78.0.2 1\n");
    Write("secret", "three banks of oars\n");
  }
  void TearDown() override {
    for (const std::string& name : names_) {
      if (!name.empty()) Works("ip netns del " + name);
    }
  }

  // The same command on each host.
  std::unique_ptr<Running> StartOn(int host, const Words& words,
                                   const std::string& secret = "secret") {
    return Start(
        words + Words{"--set", "transport.hosts=hosts", "--set", "transport.secret_file=" + secret},
        {"ip", "netns", "exec", names_[host]});
  }

  void Cable(const char* state) {
    ASSERT_TRUE(Works(fmt::format("ip -n {} link set v0 {}", names_[0], state)));
  }

  std::string names_[2];
};

// A strategy, in the words of a command line.
struct Served {
  const char* name;
  Words words;
};
inline std::ostream& operator<<(std::ostream& out, const Served& served) {
  return out << served.name;
}

}  // namespace trireme::whole
