#include "engine/cuda/library.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/clock.h"
#include "base/files.h"
#include "base/plugin.h"
#include "base/text.h"

namespace trireme::cuda {
namespace {

constexpr std::string_view kFile = "trireme-cuda.so";

std::string HowToGetOne() {
  return "build the program and the plugin together: cmake --preset release && cmake --build "
         "--preset release (docs/gpu.md)";
}

// ---- a survey on its way through a pipe: a line for each word, and a last one to know the end

constexpr std::string_view kEnd = "end";

std::string ToLines(const Survey& survey) {
  std::string text = fmt::format("{}\n{:d}\n{}\n", survey.problem, survey.absent, survey.versions);
  for (const Card& card : survey.cards) {
    text +=
        fmt::format("{}\n{}\n{}\n{}\n", card.name, card.target, card.memory_bytes, card.problem);
  }
  return text + std::string(kEnd) + "\n";
}

std::optional<Survey> FromLines(const std::string& text) {
  const std::vector<std::string> lines = Split(text, '\n');
  constexpr size_t kHead = 3, kOfCard = 4, kTail = 2;  // the last line ends with an empty one
  if (lines.size() < kHead + kTail || (lines.size() - kHead - kTail) % kOfCard != 0 ||
      lines[lines.size() - kTail] != kEnd) {
    return std::nullopt;
  }
  Survey survey{.problem = lines[0], .absent = lines[1] == "1", .versions = lines[2]};
  for (size_t i = kHead; i + kTail < lines.size(); i += kOfCard) {
    survey.cards.push_back(
        {lines[i], lines[i + 1], ParseNumber<uint64_t>(lines[i + 2]).value_or(0), lines[i + 3]});
  }
  return survey;
}

// ---- the child

[[noreturn]] void AnswerAndEnd(const std::string& path, int pipe) {
  // Handlers are the parent's, or of libraries that it has loaded: here a crash is a crash.
  for (const int number : {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGINT, SIGTERM}) {
    signal(number, SIG_DFL);
  }
  Survey survey;
  try {
    survey = OpenTable(path).survey();
  } catch (const std::exception& error) {
    survey.problem = error.what();
  }
  const std::string text = ToLines(survey);
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(pipe, text.data() + done, text.size() - done);
    if (wrote <= 0) break;
    done += size_t(wrote);
  }
  _exit(0);  // nothing of the parent's is flushed or destroyed twice
}

// What comes out of a pipe until it is closed; nothing after the deadline.
std::optional<std::string> ReadAll(int pipe, double patience_s) {
  const Stopwatch watch;
  std::string text;
  for (;;) {
    const double left = patience_s - watch.seconds();
    if (left <= 0) return std::nullopt;
    pollfd waiting{pipe, POLLIN, 0};
    if (poll(&waiting, 1, int(left * 1e3) + 1) <= 0) continue;
    char buffer[4096];
    const ssize_t got = read(pipe, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return text;
    text.append(buffer, size_t(got));
  }
}

}  // namespace

std::string FindPlugin(const char* from_environment, const std::string& folder) {
  if (from_environment != nullptr && from_environment[0] != '\0') return from_environment;
  const std::string file = fmt::format("{}/{}", folder, kFile);
  if (Exists(file)) return file;
  throw Error(
      "there is no {} in {}, and TRIREME_CUDA_PLUGIN is not set; install nvcc 12.4 or newer and "
      "cuDNN 9, then {}",
      kFile, folder, HowToGetOne());
}

const Table& OpenTable(const std::string& path) {
  const auto& table = *static_cast<const Table*>(OpenPlugin(
      {"CUDA", "trireme_cuda_table", Table::kVersion, sizeof(Table), HowToGetOne}, path));
  if (std::string_view(table.build_id) != BuildId()) {
    throw Error("the CUDA plugin {} was not built together with this program; {}", path,
                HowToGetOne());
  }
  return table;
}

Survey AskInChild(const std::string& path, double patience_s) {
  int ends[2];
  if (pipe(ends) != 0) return {.problem = fmt::format("no pipe: {}", std::strerror(errno))};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    AnswerAndEnd(path, ends[1]);
  }
  close(ends[1]);
  const auto text = child > 0 ? ReadAll(ends[0], patience_s) : std::string();
  close(ends[0]);
  if (child < 0) {
    return {.problem =
                fmt::format("cannot start a process to look for cards: {}", std::strerror(errno))};
  }
  if (!text) kill(child, SIGKILL);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!text) {
    return {.problem = fmt::format(
                "looking for cards took more than {:.0f} s; does nvidia-smi answer?", patience_s)};
  }
  if (auto survey = FromLines(*text)) return *survey;
  return {.problem = WIFSIGNALED(status)
                         ? fmt::format("{} ended with signal {} ({}) while it looked for cards; "
                                       "does nvidia-smi answer?",
                                       path, WTERMSIG(status), strsignal(WTERMSIG(status)))
                         : fmt::format("{} did not say which cards there are", path)};
}

const Survey& ThisMachine() {
  static const Survey survey = [] {
    try {
      return AskInChild(FindPlugin(std::getenv("TRIREME_CUDA_PLUGIN"), ProgramFolder()));
    } catch (const Error& error) {
      return Survey{.problem = error.what(), .absent = true};
    }
  }();
  return survey;
}

}  // namespace trireme::cuda
