#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "base/text.h"

namespace trireme {
namespace {

// What `write` sends through a pipe, read by another thread so that the pipe never fills.
template <class F>
std::string Captured(LogLevel level, F write) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  std::string text;
  std::thread reader([&] {
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, n);
  });
  {
    LogOutput output(ends[1], level);
    write(output);
  }
  close(ends[1]);
  reader.join();
  close(ends[0]);
  return text;
}

// The lines of a log without the time that each must begin with.
std::vector<std::string> WithoutTimes(const std::string& text) {
  std::vector<std::string> lines = Split(text, '\n');
  EXPECT_EQ(lines.back(), "");  // the last line is ended, too
  lines.pop_back();
  for (std::string& line : lines) {
    const size_t space = line.find(' ');
    EXPECT_EQ(line.substr(0, 1), "[") << line;
    EXPECT_TRUE(ParseNumber<double>(line.substr(1, space - 1)).has_value()) << line;
    EXPECT_EQ(line.find('.') + 3, space) << line;
    EXPECT_EQ(line.substr(space, 2), " s") << line;
    line = line.substr(space + 2);
  }
  return lines;
}

TEST(Log, BeginsWithTimeRankAndPart) {
  const std::string text = Captured(LogLevel::kInfo, [](LogOutput& output) {
    const Log log(output, 3);
    log.Info("transport", "connected to {} peers", 7);
    log.Warn("data", "a");
    log.Error("data", "b");
    log.Debug("data", "not shown");
    Log(output).Info("trainer", "no rank yet");
  });
  EXPECT_EQ(WithoutTimes(text), (std::vector<std::string>{
                                    " r3] transport: connected to 7 peers", " r3] data: warning: a",
                                    " r3] data: error: b", "] trainer: no rank yet"}));
}

TEST(Log, LevelsFilter) {
  const auto say = [](LogOutput& output) {
    const Log log(output, 0);
    log.Error("x", "e");
    log.Warn("x", "w");
    log.Info("x", "i");
    log.Debug("x", "d");
  };
  for (int level = 0; level < 4; ++level) {
    const std::string text = Captured(static_cast<LogLevel>(level), say);
    EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), level + 1);
  }
  EXPECT_EQ(ParseLogLevel("warn"), LogLevel::kWarn);
  EXPECT_EQ(ParseLogLevel("loud"), std::nullopt);
}

TEST(Log, ASinkTakesTheWordsAndNothingIsWritten) {
  std::vector<std::pair<LogLevel, std::string>> told;
  LogOutput output([&](LogLevel level, std::string_view text) { told.emplace_back(level, text); });
  const Log log(output, 3);
  log.Warn("data", "a\nb");
  log.Info("ranks", "{} of them", 2);
  log.Debug("ranks", "not shown");
  output.Line("a remark");
  output.ShowLive("epoch 1");
  EXPECT_FALSE(output.is_terminal());
  EXPECT_EQ(told, (decltype(told){{LogLevel::kWarn, "data: a b"},
                                  {LogLevel::kInfo, "ranks: 2 of them"},
                                  {LogLevel::kInfo, "a remark"}}));
}

TEST(Log, LinesOfThreadsDoNotMix) {
  const std::string text = Captured(LogLevel::kInfo, [](LogOutput& output) {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&output, rank] {
        for (int i = 0; i < 200; ++i) Log(output, rank).Info("x", "{:a>300}", rank);
      });
    }
  });
  const auto lines = WithoutTimes(text);
  ASSERT_EQ(lines.size(), 800u);
  for (const std::string& line : lines) {
    const char rank = line.at(2);
    ASSERT_EQ(line, fmt::format(" r{}] x: {:a>300}", rank, rank));
  }
}

TEST(Log, AMessageStaysOneLine) {
  const std::string text =
      Captured(LogLevel::kInfo, [](LogOutput& output) { output.Line("a\nb\x1b[2Jc\r\x7f"); });
  EXPECT_EQ(text, "a b [2Jc  \n");
}

TEST(Log, NoProgressLineWithoutATerminal) {
  const std::string text = Captured(LogLevel::kInfo, [](LogOutput& output) {
    EXPECT_FALSE(output.is_terminal());
    output.ShowLive("epoch 1");
    output.Line("x");
  });
  EXPECT_EQ(text, "x\n");
}

TEST(Log, SurvivesAClosedOutput) {
  LogOutput output(-1);
  Log(output, 0).Info("x", "nobody listens");
}

// What a terminal of ten columns gets.
std::string OnATerminal(const char* term, const char* no_colour, size_t bytes,
                        const std::function<void(LogOutput&)>& write) {
  setenv("TERM", term, 1);
  setenv("NO_COLOR", no_colour, 1);
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (grantpt(terminal) != 0 || unlockpt(terminal) != 0) return "no terminal";
  const int screen = open(ptsname(terminal), O_RDWR | O_NOCTTY);
  winsize size{.ws_row = 24, .ws_col = 10, .ws_xpixel = 0, .ws_ypixel = 0};
  ioctl(screen, TIOCSWINSZ, &size);
  {
    LogOutput output(screen);
    write(output);
  }
  std::string seen;
  while (seen.size() < bytes) {  // it arrives in pieces
    char buffer[256];
    const ssize_t n = read(terminal, buffer, sizeof buffer);
    if (n <= 0) break;
    seen.append(buffer, size_t(n));
  }
  close(screen);
  close(terminal);
  return seen;
}

TEST(Log, LinesAppearAboveTheProgressLine) {
  const std::string expected = "\r\x1b[Kepoch 1 o\r\x1b[Khello\r\nepoch 1 o\r\x1b[K";
  const std::string seen = OnATerminal("xterm", "1", expected.size(), [](LogOutput& output) {
    EXPECT_TRUE(output.is_terminal());
    output.ShowLive("epoch 1 of 9");  // cut to nine columns
    output.Line("hello");
  });
  EXPECT_EQ(seen, expected);
}

TEST(Log, ErrorsAndWarningsHaveAColourWhereThereIsOne) {
  const auto write = [](LogOutput& output) {
    output.Line("a: error: b", {3, 7, Ink::kRed});
    output.ShowLive("epoch 1 of 9");
  };
  const std::string coloured =
      "\r\x1b[Ka: \x1b[31merror: \x1b[0mb\r\n\r\x1b[K\x1b[2mepoch 1 o\x1b[0m\r\x1b[K";
  EXPECT_EQ(OnATerminal("xterm", "", coloured.size(), write), coloured);
  const std::string plain = "a: error: b\r\n\r\x1b[Kepoch 1 o\r\x1b[K";
  const std::string clear = "\r\x1b[K";
  EXPECT_EQ(OnATerminal("xterm", "1", clear.size() + plain.size(), write), clear + plain);
  EXPECT_EQ(OnATerminal("dumb", "", plain.size(), write), plain);
  EXPECT_EQ(Captured(LogLevel::kInfo, [&](LogOutput& output) { write(output); }), "a: error: b\n");
}

}  // namespace
}  // namespace trireme
