#pragma once
#include <fmt/core.h>

#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/terminal.h"

namespace trireme {

// error: the run ends. warn: it goes on differently. info: once per phase. debug: once per object.
enum class LogLevel { kError, kWarn, kInfo, kDebug };

std::optional<LogLevel> ParseLogLevel(std::string_view word);  // error, warn, info, debug

// What of a line catches the eye, where there are colours: so many bytes from there.
struct Highlight {
  size_t begin = 0, size = 0;
  Ink ink = Ink::kBold;
};

// Where log lines and the live progress line go: one per process, made by main.
// Thread-safe. Each call is one write(2), so lines of threads and processes do not mix.
class LogOutput {
 public:
  // Takes a line of the log, without a time in front of it and a line break behind it.
  using Sink = std::function<void(LogLevel level, std::string_view text)>;

  explicit LogOutput(int fd = 2, LogLevel level = LogLevel::kInfo);
  // Writes nothing: one line after the other goes to `sink`, from whichever thread says it.
  explicit LogOutput(Sink sink, LogLevel level = LogLevel::kInfo);

  void set_level(LogLevel level);  // before other threads log
  LogLevel level() const { return level_; }
  bool is_terminal() const { return is_terminal_; }
  int width() const;       // of the live line: the terminal's, less a column that would wrap
  double Seconds() const;  // since this was made: the time in front of each line

  bool has_sink() const { return sink_ != nullptr; }
  void Tell(LogLevel level, std::string_view text);  // the sink

  // A whole line; what would break it (line breaks, control characters) becomes a space.
  void Line(std::string_view text, const Highlight& highlight = {});

  // The progress line: stays the last on the screen, cut to its width. Nothing where there is no
  // terminal. An empty text takes it away; the destructor does so, too.
  void ShowLive(std::string_view text);

  ~LogOutput();
  LogOutput(const LogOutput&) = delete;
  LogOutput& operator=(const LogOutput&) = delete;

 private:
  std::string Visible() const;         // live_ as it fits on the screen
  void Write(std::string_view bytes);  // under mutex_

  const int fd_;
  const Sink sink_;
  LogLevel level_;
  const bool is_terminal_, is_screen_, is_coloured_;
  const std::chrono::steady_clock::time_point start_;
  std::mutex mutex_;
  std::string live_;  // guarded by mutex_
};

// What one rank says: `[12.48 s r3] transport: connected to 7 peers in 0.3 s`.
//
//   Log log(output, rank);
//   log.Info("transport", "connected to {} peers in {:.1f} s", peers, seconds);
//
// A small value over an output that outlives it. Thread-safe.
class Log {
 public:
  static constexpr int kNoRank = -1;  // before ranks exist

  explicit Log(LogOutput& output, int rank = kNoRank) : output_(&output), rank_(rank) {}

  template <class... A>
  void Error(std::string_view part, fmt::format_string<A...> text, A&&... args) const {
    Say(LogLevel::kError, part, text, std::forward<A>(args)...);
  }
  template <class... A>
  void Warn(std::string_view part, fmt::format_string<A...> text, A&&... args) const {
    Say(LogLevel::kWarn, part, text, std::forward<A>(args)...);
  }
  template <class... A>
  void Info(std::string_view part, fmt::format_string<A...> text, A&&... args) const {
    Say(LogLevel::kInfo, part, text, std::forward<A>(args)...);
  }
  template <class... A>
  void Debug(std::string_view part, fmt::format_string<A...> text, A&&... args) const {
    Say(LogLevel::kDebug, part, text, std::forward<A>(args)...);
  }

  LogOutput& output() const { return *output_; }

 private:
  template <class... A>
  void Say(LogLevel level, std::string_view part, fmt::format_string<A...> text,
           A&&... args) const {
    if (level <= output_->level()) Print(level, part, fmt::format(text, std::forward<A>(args)...));
  }
  void Print(LogLevel level, std::string_view part, const std::string& text) const;

  LogOutput* output_;
  int rank_;
};

}  // namespace trireme
