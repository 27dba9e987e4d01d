#include "transport/tcp/handshake.h"

#include <cstring>

#include "transport/tcp/hmac.h"

namespace trireme {
namespace {

constexpr char kMagic[8] = {'t', 'r', 'i', 'r', 'e', 'm', 'e', '\n'};
constexpr uint32_t kVersion = 2;
constexpr size_t kMaxWords = 2000;

struct HelloWire {
  char magic[8] = {};
  uint32_t version = kVersion, purpose = 0;
  int32_t size = 0, from = 0, to = 0, zero = 0;
  uint64_t incarnation = 0, expected = 0;
  unsigned char nonce[32] = {};
};
struct ChallengeWire {
  char magic[8] = {};
  uint64_t incarnation = 0;
  unsigned char nonce[32] = {};
};
enum class Admission : uint32_t { kRefused, kAccepted, kNotNow };
struct VerdictWire {
  Admission verdict = Admission::kRefused;
  uint32_t length = 0;
  Digest proof = {};
};
struct TextWire {
  uint32_t refusal = 0, length = 0;
};
static_assert(sizeof(HelloWire) == 80 && sizeof(ChallengeWire) == 48 && sizeof(VerdictWire) == 40);

Digest Proof(const std::string& secret, std::string_view role, const HelloWire& hello,
             const ChallengeWire& challenge) {
  std::string text(role);
  text.append(reinterpret_cast<const char*>(&hello), sizeof(hello));
  text.append(reinterpret_cast<const char*>(&challenge), sizeof(challenge));
  return HmacSha256(secret, text);
}

template <class T>
asio::awaitable<void> Put(Socket& socket, const T& what) {
  const auto bytes = asio::buffer(&what, sizeof(T));
  co_await asio::async_write(socket, bytes, asio::use_awaitable);
}

template <class T>
asio::awaitable<void> Get(Socket& socket, T& what) {
  const auto bytes = asio::buffer(&what, sizeof(T));
  co_await asio::async_read(socket, bytes, asio::use_awaitable);
}

asio::awaitable<std::string> GetWords(Socket& socket, size_t length, size_t max) {
  if (length > max)
    throw Refused("a text of {} bytes is too long; at most {} are allowed", length, max);
  std::string words(length, '\0');
  const auto bytes = asio::buffer(words);
  co_await asio::async_read(socket, bytes, asio::use_awaitable);
  co_return words;
}

// Words of one that may be a stranger, for the user's eyes.
std::string Printable(std::string words) {
  for (char& c : words) {
    if (c < ' ' || c > '~') c = '?';
  }
  return words;
}

}  // namespace

asio::awaitable<uint64_t> Introduce(Socket& socket, Hello mine, const std::string& secret) {
  HelloWire hello;
  std::memcpy(hello.magic, kMagic, sizeof(kMagic));
  hello.purpose = uint32_t(mine.purpose);
  hello.size = mine.size;
  hello.from = mine.from;
  hello.to = mine.to;
  hello.incarnation = mine.incarnation;
  hello.expected = mine.expected;
  FillRandom(hello.nonce);
  co_await Put(socket, hello);
  ChallengeWire challenge;
  co_await Get(socket, challenge);
  if (std::memcmp(challenge.magic, kMagic, sizeof(kMagic)) != 0) {
    throw Refused("a different program answers there");
  }
  const Digest proof = Proof(secret, "connects", hello, challenge);
  co_await Put(socket, proof);
  VerdictWire answer;
  co_await Get(socket, answer);
  if (answer.verdict != Admission::kAccepted) {
    const std::string words = co_await GetWords(socket, answer.length, kMaxWords);
    if (answer.verdict == Admission::kNotNow) throw Unanswered("{}", Printable(words));
    throw Refused("{}", Printable(words));
  }
  if (!SameDigest(answer.proof, Proof(secret, "answers", hello, challenge))) {
    throw Refused(
        "the program that answers there does not know the run's secret (transport.secret_file)");
  }
  co_return challenge.incarnation;
}

asio::awaitable<Hello> Answer(Socket& socket, const std::string& secret, uint64_t incarnation,
                              FunctionRef<void()> heard,
                              FunctionRef<std::string(const Hello&)> judge) {
  HelloWire hello;
  co_await Get(socket, hello);
  heard();
  if (std::memcmp(hello.magic, kMagic, sizeof(kMagic)) != 0) throw Refused("not a rank");
  ChallengeWire challenge;
  std::memcpy(challenge.magic, kMagic, sizeof(kMagic));
  challenge.incarnation = incarnation;
  FillRandom(challenge.nonce);
  co_await Put(socket, challenge);
  Digest proof;
  co_await Get(socket, proof);

  const asio::ip::address address = socket.remote_endpoint().address();
  const Hello told = {Purpose(hello.purpose), hello.size,     hello.from, hello.to,
                      hello.incarnation,      hello.expected, address};
  std::string words;
  bool not_now = false;
  if (hello.version != kVersion) {  // first: another version may prove itself in another way
    words = fmt::format(
        "this program speaks version {} of the protocol, the other one version {}; start all ranks "
        "with the same build",
        kVersion, hello.version);
  } else if (secret.empty() && !IsLoopback(address)) {
    words =
        "this run has no secret, so only ranks of the same host can join; set "
        "transport.secret_file";
  } else if (!SameDigest(proof, Proof(secret, "connects", hello, challenge))) {
    words = "the run's secret is different; use the same transport.secret_file or TRIREME_SECRET";
  } else {
    try {
      words = judge(told);
    } catch (const Unanswered& error) {
      words = error.what();
      not_now = true;
    }
  }
  words.resize(std::min(words.size(), kMaxWords));
  VerdictWire answer;
  answer.length = uint32_t(words.size());
  if (words.empty()) {
    answer.verdict = Admission::kAccepted;
    answer.proof = Proof(secret, "answers", hello, challenge);
  } else if (not_now) {
    answer.verdict = Admission::kNotNow;
  }
  co_await Put(socket, answer);
  if (words.empty()) co_return told;
  const auto bytes = asio::buffer(words);
  co_await asio::async_write(socket, bytes, asio::use_awaitable);
  throw Refused("{}", words);
}

asio::awaitable<void> WriteText(Socket& socket, std::string text, bool refusal) {
  const TextWire head = {refusal, uint32_t(text.size())};
  co_await Put(socket, head);
  const auto bytes = asio::buffer(text);
  co_await asio::async_write(socket, bytes, asio::use_awaitable);
}

asio::awaitable<std::string> ReadText(Socket& socket, size_t max_bytes) {
  TextWire head;
  co_await Get(socket, head);
  std::string text = co_await GetWords(socket, head.length, max_bytes);
  if (head.refusal) throw Refused("{}", Printable(text));
  co_return text;
}

std::string WhyBroken(const std::system_error& error, double silent_s) {
  if (silent_s > 0) return fmt::format("said nothing for {:g} s", silent_s);
  const std::error_code code = error.code();
  const bool hung_up = code == asio::error::eof || code == asio::error::connection_reset ||
                       code == asio::error::broken_pipe;
  return hung_up ? "hung up" : code.message();
}

bool IsLoopback(const asio::ip::address& address) {
  if (address.is_v6() && address.to_v6().is_v4_mapped()) {
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).is_loopback();
  }
  return address.is_loopback();
}

std::string Name(const asio::ip::tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return fmt::format("{}:{}", endpoint.address().is_v6() ? "[" + address + "]" : address,
                     endpoint.port());
}

}  // namespace trireme
