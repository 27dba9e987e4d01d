// A run as it goes on, in the terminal or the browser; reads its files and nothing else.
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "base/clock.h"
#include "base/signals.h"
#include "cli/command.h"
#include "cli/page_server.h"
#include "cli/utf8_locale.h"
#include "record/json.h"
#include "report/page/page_html.h"
#include "report/page/run_page.h"
#include "report/terminal/watch_view.h"

namespace trireme {
namespace {

constexpr int kUsualPort = 8377;

constexpr Flag kFlags[] = {
    {"--once", "", "print one view and exit"},
    {"--http", "", "serve the page of `trireme report` on 127.0.0.1; it updates itself"},
    {"--port", "N",
     "port for --http; 0: any free one (default: 8377, or any free one if that is taken)"},
    {"--every", "SECONDS", "time between looks at the run's files (default: 1)"},
};

constexpr Place kPlaces[] = {{"RUN", Place::kRequired, "a run's directory"}};

ViewSize SizeOfTerminal(bool terminal) {
  ViewSize size{80, 40, Utf8Locale()};
  winsize window{};
  if (terminal && ::ioctl(1, TIOCGWINSZ, &window) == 0 && window.ws_col > 0) {
    size.width = window.ws_col;
    size.height = window.ws_row;
  }
  return size;
}

double WallSeconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Draws over itself on a terminal; elsewhere a line for each news and the view at the end.
int WatchText(RunReader& reader, double every_s, Process& process) {
  const Signals signals;
  const bool terminal = ::isatty(1) == 1;
  const RunData& run = reader.data();
  double drawn_s = -1e9;
  while (!signals.stop()) {
    const bool news = reader.Poll();
    if (terminal && (news || Now() - drawn_s > 10)) {
      process.out.Write("\x1b[H\x1b[J" + WatchView(run, WallSeconds(), SizeOfTerminal(true)));
      drawn_s = Now();
    } else if (!terminal && news && !run.over()) {
      process.out.Write(WatchStatus(run, WallSeconds()) + "\n");
    }
    if (run.over()) {
      if (!terminal) process.out.Write(WatchView(run, WallSeconds(), SizeOfTerminal(false)));
      return 0;
    }
    ::poll(nullptr, 0, int(every_s * 1000));
  }
  return signals.ExitCode();
}

PageServer OpenServer(const Args& args) {
  const int port = args.Number("--port", kUsualPort);
  if (port < 0 || port > 65535)
    throw UsageError("--port must be between 0 and 65535, got {}", port);
  if (args.Has("--port")) return PageServer(port);
  try {
    return PageServer(kUsualPort);
  } catch (const Error&) {
    return PageServer(0);
  }
}

// Goes on after the run's end, for whoever looks at the page; ends with a signal.
int WatchHttp(RunReader& reader, double every_s, PageServer& server, Process& process) {
  const Signals signals;
  const RunData& run = reader.data();
  process.out.Print("http://127.0.0.1:{}/ shows {}; Ctrl-C stops it\n", server.port(), run.path);
  std::string data;  // of the newest state, once somebody asks
  const auto pages = [&](std::string_view path) -> HttpAnswer {
    const LiveState now{WatchTitle(run), WatchStatus(run, WallSeconds()), run.over()};
    const auto page = [&] { return RunsPage({&run, 1}, RunsPageState::kElsewhere); };
    if (path == "/") return {200, "text/html; charset=utf-8", LivePageHtml(page(), now)};
    if (path != "/data") return {404, {}, "only / and /data exist here\n"};
    if (data.empty()) data = PageContent(page());
    Json json = Json::Object();
    json.Add("html", data).Add("title", now.title).Add("state", now.text).Add("over", now.over);
    return {200, "application/json", json.Text()};
  };
  while (!signals.stop()) {
    if (reader.Poll()) data.clear();
    server.Serve(every_s, pages);
  }
  return signals.ExitCode();
}

int Run(const Args& args, Process& process) {
  const double every_s = args.Number("--every", 1.0);
  if (!(every_s >= 0.1 && every_s <= 3600)) {
    throw UsageError("--every must be between 0.1 and 3600, got {}", every_s);
  }
  if (args.Has("--port") && !args.Has("--http")) throw UsageError("--port needs --http");
  if (args.Has("--once") && args.Has("--http")) {
    throw UsageError("--once and --http cannot be used together; choose one");
  }
  RunReader reader(args.Required("RUN"));
  if (args.Has("--http")) {
    PageServer server = OpenServer(args);
    return WatchHttp(reader, every_s, server, process);
  }
  if (args.Has("--once")) {
    reader.Poll();
    process.out.Write(WatchView(reader.data(), WallSeconds(), SizeOfTerminal(::isatty(1) == 1)));
    return 0;
  }
  return WatchText(reader, every_s, process);
}

}  // namespace

extern const Command kWatch;
const Command kWatch = {
    .name = "watch",
    .summary = "watch a run in the terminal or the browser",
    .usage = "trireme watch RUN [--once | --http [--port N]]",
    .examples =
        "trireme watch runs/a            # until it ends or Ctrl-C\n"
        "trireme watch runs/a --once     # as it is now\n"
        "trireme watch runs/a --http     # a page that updates itself, on this machine only\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
