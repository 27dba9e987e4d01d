#include "base/log.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/text.h"

namespace trireme {
namespace {

constexpr std::array<std::string_view, 4> kLevels = {"error", "warn", "info", "debug"};
constexpr std::string_view kClearLine = "\r\x1b[K";

std::string OneLine(std::string_view text) {
  std::string line(text);
  for (char& c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7F) c = ' ';
  }
  return line;
}

}  // namespace

std::optional<LogLevel> ParseLogLevel(std::string_view word) {
  for (size_t i = 0; i < kLevels.size(); ++i) {
    if (kLevels[i] == word) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

LogOutput::LogOutput(int fd, LogLevel level)
    : fd_(fd),
      level_(level),
      is_terminal_(isatty(fd) == 1),
      is_screen_(IsScreen(fd)),
      is_coloured_(ShowsColour(fd)),
      start_(std::chrono::steady_clock::now()) {}

LogOutput::LogOutput(Sink sink, LogLevel level)
    : fd_(-1),
      sink_(std::move(sink)),
      level_(level),
      is_terminal_(false),
      is_screen_(false),
      is_coloured_(false),
      start_(std::chrono::steady_clock::now()) {}

LogOutput::~LogOutput() { ShowLive(""); }

void LogOutput::set_level(LogLevel level) { level_ = level; }

double LogOutput::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void LogOutput::Tell(LogLevel level, std::string_view text) {
  const std::lock_guard lock(mutex_);
  sink_(level, OneLine(text));
}

void LogOutput::Line(std::string_view text, const Highlight& highlight) {
  if (has_sink()) return Tell(LogLevel::kInfo, text);
  const std::lock_guard lock(mutex_);
  std::string bytes;
  // Another process may have left its live line there: a rank that was killed.
  if (is_screen_ || !live_.empty()) bytes += kClearLine;
  std::string line = OneLine(text);
  if (is_coloured_ && highlight.size > 0 && highlight.begin < line.size()) {
    const std::string part = line.substr(highlight.begin, highlight.size);
    line.replace(highlight.begin, part.size(), Inked(part, highlight.ink));
  }
  bytes += line + '\n';
  if (!live_.empty()) bytes += Visible();
  Write(bytes);
}

void LogOutput::ShowLive(std::string_view text) {
  if (!is_terminal_) return;
  const std::lock_guard lock(mutex_);
  if (live_.empty() && text.empty()) return;
  live_ = OneLine(text);
  Write(std::string(kClearLine) + Visible());
}

int LogOutput::width() const {
  winsize size{};
  const bool known = ioctl(fd_, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
  return known ? size.ws_col - 1 : 79;
}

std::string LogOutput::Visible() const {
  const std::string_view shown = FirstColumns(live_, size_t(width()));
  return is_coloured_ && !shown.empty() ? Inked(shown, Ink::kFaint) : std::string(shown);
}

void LogOutput::Write(std::string_view bytes) {
  // A log that cannot be written must not end a run, nor hold it up for long.
  for (int waits = 0; !bytes.empty() && waits < 10;) {
    const ssize_t written = ::write(fd_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<size_t>(written));
    } else if (errno == EAGAIN) {
      pollfd ready{fd_, POLLOUT, 0};
      ::poll(&ready, 1, /*ms=*/100);
      ++waits;
    } else if (errno != EINTR) {
      return;
    }
  }
}

void Log::Print(LogLevel level, std::string_view part, const std::string& text) const {
  if (output_->has_sink()) return output_->Tell(level, fmt::format("{}: {}", part, text));
  const std::string rank = rank_ == kNoRank ? "" : fmt::format(" r{}", rank_);
  const std::string_view mark = level == LogLevel::kError  ? "error: "
                                : level == LogLevel::kWarn ? "warning: "
                                                           : "";
  const std::string before = fmt::format("[{:.2f} s{}] {}: ", output_->Seconds(), rank, part);
  output_->Line(before + std::string(mark) + text,
                {before.size(), mark.size(), level == LogLevel::kError ? Ink::kRed : Ink::kYellow});
}

}  // namespace trireme
