#pragma once
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/function_ref.h"
#include "transport/tcp/asio.h"

namespace trireme {

// The first words on every connection: who connects to whom and what for, and the proof, both ways,
// that each side knows the run's secret (a challenge each, answered by HMAC-SHA256).
//
//   connects: hello (with a random number)     answers: its own random number
//   connects: proof                            answers: verdict, with its proof
enum class Purpose : uint32_t {
  kMeet = 1,
  kPair,
  kLink,
  kJoin,     // to a server: the fingerprint of the one that connects follows
  kRunInfo,  // to a server: the run info of the other one follows
  kMemory,   // to a memory box: words follow (transport/memory/word.h)
};

struct Hello {
  Purpose purpose = Purpose::kMeet;
  int size = 0, from = 0, to = 0;
  uint64_t incarnation = 0;        // of the one that connects
  uint64_t expected = 0;           // of the other one; 0: not known
  asio::ip::address address = {};  // of the one that connects, as the other one sees it
};

// The other side said no. Trying again is of no use.
class Refused : public Error {
 public:
  using Error::Error;
};

// Nobody answered, or the connection broke: another attempt may succeed.
class Unanswered : public Error {
 public:
  using Error::Error;
};

constexpr double kHandshakeSeconds = 5;
constexpr double kHelloSeconds = 1;  // of these: whoever connects speaks at once

// Both throw asio::system_error where the connection breaks, and Refused.
// `heard` is called when the hello is here, `judge` with the hello of one that knows the secret;
// its words, if any, are the refusal. Where it throws Unanswered, the other end may try again.
asio::awaitable<uint64_t> Introduce(Socket& socket, Hello mine, const std::string& secret);
asio::awaitable<Hello> Answer(Socket& socket, const std::string& secret, uint64_t incarnation,
                              FunctionRef<void()> heard,
                              FunctionRef<std::string(const Hello&)> judge);

// Why a connection broke. `silent_s`: a watch of so many seconds closed it; 0: none did.
std::string WhyBroken(const std::system_error& error, double silent_s = 0);

// A text of limited length, or a refusal with its words, which Read throws.
asio::awaitable<void> WriteText(Socket& socket, std::string text, bool refusal = false);
asio::awaitable<std::string> ReadText(Socket& socket, size_t max_bytes);

bool IsLoopback(const asio::ip::address& address);
std::string Name(const asio::ip::tcp::endpoint& endpoint);  // 10.0.0.1:4000, [::1]:4000

}  // namespace trireme
