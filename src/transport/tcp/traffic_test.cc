#include "transport/tcp/traffic.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "base/random.h"

namespace trireme {
namespace {

using Stage = TcpTransfer::Stage;

// Two ranks whose frames move when a test says so.
struct Two {
  PairTraffic a{0, 2, 1}, b{1, 2, 0};
  std::deque<TcpTransfer> transfers;

  TcpTransfer& Post(PairTraffic& traffic, bool sends, Tag tag, std::vector<char>& v) {
    TcpTransfer& t = transfers.emplace_back();
    t.sends = sends;
    t.tag = tag;
    t.data = reinterpret_cast<std::byte*>(v.data());
    t.size = v.size();
    traffic.Post(t);
    return t;
  }
  void Move() {
    for (int i = 0; i < 3; ++i) {
      Pump(a, b);
      Pump(b, a);
    }
  }
};

TEST(PairTraffic, AShortMessageWaitsForItsReceiveAndALongOneForTheWord) {
  Two two;
  std::vector<char> short_out(100, 's'), long_out(3 * kPieceBytes + 1, 'l');
  std::vector<char> short_in(100), long_in(long_out.size());
  TcpTransfer& s = two.Post(two.a, true, 1, short_out);
  TcpTransfer& l = two.Post(two.a, true, 2, long_out);
  two.Move();
  EXPECT_EQ(s.stage, Stage::kDone);
  EXPECT_EQ(l.stage, Stage::kWaiting);
  TcpTransfer& r = two.Post(two.b, false, 2, long_in);
  two.Move();
  EXPECT_EQ(l.stage, Stage::kDone);
  EXPECT_EQ(r.stage, Stage::kDone);
  EXPECT_EQ(long_in, long_out);
  EXPECT_EQ(two.Post(two.b, false, 1, short_in).stage, Stage::kDone);
  EXPECT_EQ(short_in, short_out);
  EXPECT_EQ(two.a.volume().sent, short_out.size() + long_out.size());
  EXPECT_EQ(two.b.volume().received, two.a.volume().sent);
}

TEST(PairTraffic, MessagesOfAnyLengthMeetInOrderWhoeverComesFirst) {
  constexpr size_t kMessages = 60;
  const Random random(7);
  uint64_t draw = 0;
  for (uint64_t round = 0; round < 30; ++round) {
    const auto length = [&](size_t i) {  // empty, short, and around the limit of short
      const uint64_t bits = random.Bits(1'000'000 + 1000 * round + i);
      return (bits % 4 ? 0 : kEagerBytes - 2) + bits / 4 % 5;
    };
    Two two;
    std::deque<std::vector<char>> out, in;
    while (in.size() < kMessages || out.size() < kMessages) {
      const uint64_t dice = random.Bits(++draw) % 5;
      if (dice < 2 && out.size() < kMessages) {
        out.emplace_back(length(out.size()), char(out.size()));
        two.Post(two.a, true, 3, out.back());
      } else if (dice < 4 && in.size() < kMessages) {
        in.emplace_back(length(in.size()));
        two.Post(two.b, false, 3, in.back());
      } else {
        two.Move();
      }
    }
    two.Move();
    for (const TcpTransfer& t : two.transfers) ASSERT_EQ(t.stage, Stage::kDone);
    ASSERT_EQ(in, out);
  }
}

TEST(PairTraffic, APeerThatNobodyListensToRunsOutOfCredit) {
  Two two;
  std::vector<char> v(kEagerBytes);
  int done = 0;
  for (int i = 0; i < 100; ++i) {
    const TcpTransfer& t = two.Post(two.a, true, 1, v);
    two.Move();
    done += t.stage == Stage::kDone;
  }
  EXPECT_LE(done * kEagerBytes, kCreditBytes);
  EXPECT_GT(done, 10);
  for (int i = 0; i < 100; ++i) two.Post(two.b, false, 1, v);
  two.Move();
  for (const TcpTransfer& t : two.transfers) EXPECT_EQ(t.stage, Stage::kDone);
  EXPECT_EQ(two.Post(two.a, true, 1, v).stage, Stage::kWaiting);
  two.Move();
  EXPECT_EQ(two.transfers.back().stage, Stage::kDone) << "credit came back";
}

TEST(PairTraffic, BothSidesHearOfDifferentLengths) {
  for (const size_t sent : {size_t{8}, kEagerBytes + 8}) {
    for (const size_t wanted : {size_t{9}, kEagerBytes + 9}) {
      for (const bool receive_first : {false, true}) {
        Two two;
        std::vector<char> out(sent), in(wanted);
        TcpTransfer *s = nullptr, *r = nullptr;
        if (receive_first) r = &two.Post(two.b, false, 1, in);
        if (receive_first) two.Move();
        s = &two.Post(two.a, true, 1, out);
        two.Move();
        if (!receive_first) r = &two.Post(two.b, false, 1, in);
        two.Move();
        EXPECT_EQ(r->stage, Stage::kFailed);
        EXPECT_EQ(r->error, fmt::format("rank 1 of 2 expects {} bytes from rank 0, which sends {} "
                                        "(tag 1)",
                                        wanted, sent));
        EXPECT_EQ(s->stage, sent > kEagerBytes ? Stage::kFailed : Stage::kDone);
        EXPECT_EQ(s->error, sent > kEagerBytes ? r->error : "");
      }
    }
  }
}

TEST(PairTraffic, WhatIsTakenBackIsFilledUpAndTheWordOfItArrives) {
  Two two;
  std::vector<char> out(kPieceBytes, 'x'), in(kPieceBytes);
  TcpTransfer& s = two.Post(two.a, true, 1, out);
  TcpTransfer& r = two.Post(two.b, false, 1, in);
  Pump(two.b, two.a);
  ASSERT_NE(two.a.Next(true), nullptr);  // the announcement
  two.b.Take(*Decode(two.a.Next(true)->header));
  two.a.Written(kFrameBytes);
  PairTraffic::Outgoing* piece = two.a.Next(true);
  two.b.Take(*Decode(piece->header));
  std::memcpy(two.b.room().data(), piece->data, 1000);
  two.b.Arrived(1000);
  two.a.Written(kFrameBytes + 1000);
  two.a.Finish();
  two.a.Cancel(s);
  two.a.Abort(0, "went home");
  piece = two.a.Next(true);
  EXPECT_EQ(piece->data, nullptr);
  EXPECT_EQ(piece->size, kPieceBytes);
  two.b.Arrived(kPieceBytes - 1000);
  two.a.Written(kPieceBytes - 1000);
  Pump(two.a, two.b);
  const auto loss = two.b.TakeLoss();
  ASSERT_TRUE(loss);
  EXPECT_EQ(loss->rank, 0);
  EXPECT_EQ(loss->reason, "went home");
  EXPECT_EQ(r.stage, Stage::kDone);  // its bytes were there
}

// Frames of one that wants to do harm: refused or taken, never more memory than its credit.
TEST(PairTraffic, HostileFramesAreRefused) {
  const Random random(3);
  int refused = 0, taken = 0;
  for (int round = 0; round < 3000; ++round) {
    Two two;
    std::vector<char> small(100), large(2 * kPieceBytes);
    two.Post(two.b, false, 1, small);
    two.Post(two.b, false, 1, large);
    two.Post(two.b, true, 2, large);
    try {
      for (int i = 0; i < 40; ++i) {
        const uint64_t bits = random.Bits(uint64_t(round) * 64 + i);
        const uint64_t lengths[] = {0,           100, kEagerBytes, kPieceBytes, 2 * kPieceBytes,
                                    ~uint64_t{0}};
        const Frame frame = {FrameKind(1 + bits % 16), int32_t(bits >> 8) % 4 - (bits % 97 == 0),
                             (bits >> 16) % 3, lengths[(bits >> 24) % 6],
                             lengths[(bits >> 32) % 6] * (bits >> 40 & 1)};
        two.b.Take(frame);
        while (two.b.inside()) {
          const auto room = two.b.room();
          ASSERT_LE(room.size(), kPieceBytes);
          if (room.data()) std::memset(room.data(), 1, room.size());
          two.b.Arrived(room.size());
        }
        ++taken;
      }
    } catch (const BadFrame& error) {
      EXPECT_NE(std::string(error.what()).find("invalid frame"), std::string::npos);
      ++refused;
    }
    two.b.Finish();
    for (TcpTransfer& t : two.transfers) two.b.Cancel(t);
  }
  EXPECT_GT(refused, 1000);
  EXPECT_GT(taken, 1000);
}

TEST(Frame, OnlyWhatWasEncodedIsDecoded) {
  const Frame frame = {FrameKind::kData, 7, 8, 9, 10};
  FrameBytes bytes = Encode(frame);
  const auto back = Decode(bytes);
  ASSERT_TRUE(back);
  EXPECT_EQ(back->extra, 10u);
  EXPECT_EQ(back->tag, 7);
  for (const size_t i : {0, 1, 3}) {
    bytes = Encode(frame);
    bytes[i] ^= std::byte{1};
    EXPECT_FALSE(Decode(bytes));
  }
  bytes = Encode(frame);
  for (const int kind : {0, 16, 255}) {
    bytes[2] = std::byte(kind);
    EXPECT_FALSE(Decode(bytes));
  }
}

}  // namespace
}  // namespace trireme
