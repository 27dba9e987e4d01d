#include "base/log.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>

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
      start_(std::chrono::steady_clock::now()) {}

LogOutput::~LogOutput() { ShowLive(""); }

void LogOutput::set_level(LogLevel level) { level_ = level; }

double LogOutput::Seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void LogOutput::Line(std::string_view text) {
  const std::lock_guard lock(mutex_);
  std::string bytes;
  // Another process may have left its live line there: a rank that was killed.
  if (is_terminal_) bytes += kClearLine;
  bytes += OneLine(text);
  bytes += '\n';
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
  const int most = width();
  int columns = 0;
  for (size_t i = 0; i < live_.size(); ++i) {
    const bool starts_character = (live_[i] & 0xC0) != 0x80;
    if (starts_character && ++columns > most) return live_.substr(0, i);
  }
  return live_;
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
  const std::string rank = rank_ == kNoRank ? "" : fmt::format(" r{}", rank_);
  const std::string_view mark = level == LogLevel::kError  ? "error: "
                                : level == LogLevel::kWarn ? "warning: "
                                                           : "";
  output_->Line(fmt::format("[{:.2f} s{}] {}: {}{}", output_->Seconds(), rank, part, mark, text));
}

}  // namespace trireme
