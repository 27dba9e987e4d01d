#include "transport/tcp/memory_channel.h"

#include <algorithm>
#include <thread>

#include "transport/open_files.h"
#include "transport/tcp/endpoint.h"

namespace trireme {

MemoryChannel::MemoryChannel(const TcpMemorySetup& setup, uint64_t client)
    : setup_(setup), client_(client) {
  Connect();
}

MemoryChannel::~MemoryChannel() {
  if (!wire_ || lost_) return;
  try {
    wire_->Write(std::as_bytes(std::span<const Word>({{.kind = WordKind::kLeave}})), {}, After(1));
  } catch (const std::exception&) {  // it ends by itself, later
  }
}

void MemoryChannel::Connect() {
  const bool comes_back = incarnation_ != 0;
  const Hello hello{.purpose = Purpose::kMemory,
                    .from = comes_back,
                    .incarnation = client_,
                    .expected = incarnation_};
  const Deadline limit = After(setup_.timeout_s);
  ParseMeet(setup_.meet, "the memory box");  // throws
  wire_.reset();
  std::string why;
  uint64_t found = 0;
  for (double wait_s = 0.01; !wire_; wait_s = std::min(2 * wait_s, 0.5)) {
    asio::io_context io(1);
    const auto dial = [&]() -> asio::awaitable<void> {
      Socket socket = co_await DialName(setup_.meet, hello, setup_.secret, &found);
      wire_ = std::make_unique<Wire>(socket.release());
    };
    auto ended = Begin(io, dial());
    io.run();
    const std::exception_ptr error = ended.get();
    if (!error) break;
    try {
      std::rethrow_exception(error);
    } catch (const Refused& e) {
      throw PeerLost("the memory box at {} refused: {}", setup_.meet, e.what());
    } catch (const Unanswered& e) {
      why = e.what();
    } catch (const std::system_error& e) {
      if (IsOutOfFiles(e.code())) throw Error("{}", OutOfFiles());
      why = WhyBroken(e);
    }
    if (After(wait_s) >= limit) {
      throw PeerLost("no memory box answers at {}: {} (transport.timeout_s = {:g})", setup_.meet,
                     why, setup_.timeout_s);
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(wait_s));
  }
  wire_->NoticeSilence(setup_.timeout_s);
  const uint64_t before = std::exchange(incarnation_, found);
  if (comes_back && before != found) {
    throw MemoryRenewed("the memory box at {} came back without its contents", setup_.meet);
  }
}

void MemoryChannel::Say(Exchange& exchange) {
  if (lost_) std::rethrow_exception(lost_);
  // A box that sends values reads nothing meanwhile: hear them first.
  while (!said_.empty() && (said_.size() >= kKeptResults || !said_.back()->into.empty())) {
    Await(*said_.front());
  }
  said_.push_back(&exchange);
  try {
    if (!wire_) throw WireBroken("");
    Write(exchange);
  } catch (const WireBroken&) {
    Mend();
  }
}

void MemoryChannel::Write(const Exchange& exchange) {
  wire_->Write(std::as_bytes(std::span(&exchange.word, 1)), exchange.values,
               After(setup_.timeout_s));
}

void MemoryChannel::Await(Exchange& exchange) {
  while (!exchange.done) {
    if (exchange.error) std::rethrow_exception(exchange.error);
    try {
      Hear();
    } catch (const WireBroken&) {
      Mend();
    }
  }
}

void MemoryChannel::Hear() {
  Exchange& next = *said_.front();
  const Deadline deadline = After(setup_.timeout_s);
  Reply& answer = next.answer;
  wire_->Read(std::as_writable_bytes(std::span(&answer, 1)), deadline);
  if (answer.verdict == Verdict::kDone && next.text) {
    constexpr uint64_t kMostAnswer = 1 << 22;
    const uint64_t unit = next.word.kind == WordKind::kNotes ? sizeof(RingEntry) : 1;
    if (answer.length > kMostAnswer / unit) {
      Lose(std::make_exception_ptr(PeerLost("the memory box at {} sent too much", setup_.meet)));
    }
    next.text->resize(answer.length * unit);
    wire_->Read(std::as_writable_bytes(std::span(*next.text)), deadline);
  } else if (answer.verdict == Verdict::kDone && next.word.kind == WordKind::kGet) {
    if (answer.length != next.into.size()) {
      Lose(std::make_exception_ptr(PeerLost("the memory box at {} sent {} bytes instead of {}",
                                            setup_.meet, answer.length, next.into.size())));
    }
    wire_->Read(next.into, deadline);
  }
  next.done = true;
  said_.pop_front();
}

void MemoryChannel::Mend() {
  const Deadline limit = After(setup_.timeout_s);
  for (;;) {
    try {
      Connect();
      for (const Exchange* exchange : said_) Write(*exchange);
      return;
    } catch (const WireBroken& error) {
      if (After(0) >= limit) {
        Lose(std::make_exception_ptr(
            PeerLost("the connection to the memory box at {} breaks again and again: {}",
                     setup_.meet, error.what())));
      }
    } catch (const MemoryRenewed&) {  // the channel goes on, with new regions
      const std::exception_ptr error = std::current_exception();
      for (Exchange* exchange : said_) exchange->error = error;
      said_.clear();
      throw;
    } catch (const Error&) {
      Lose(std::current_exception());
    }
  }
}

void MemoryChannel::Lose(std::exception_ptr error) {
  lost_ = error;
  for (Exchange* exchange : said_) exchange->error = error;
  said_.clear();
  std::rethrow_exception(error);
}

}  // namespace trireme
