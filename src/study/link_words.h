#pragma once
#include <string_view>

namespace trireme {

// A network link in words: "1Gbit/s", "1Gbit/s,5ms", "200MB/s,50us".
struct LinkWords {
  double bytes_per_s = 0;
  double latency_ms = 0;
};
LinkWords ParseLink(std::string_view text);  // UsageError: what it must look like

}  // namespace trireme
