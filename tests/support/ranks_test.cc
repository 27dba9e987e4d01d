#include "support/ranks_test.h"

#include <arpa/inet.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <random>
#include <regex>
#include <thread>

#include "base/proc_file.h"
#include "base/text.h"

namespace trireme::whole {
namespace {

namespace fs = std::filesystem;

constexpr char kShared[] = "/dev/shm";

std::set<std::string> NamesIn(const std::string& folder) {
  std::set<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    names.insert(entry.path().filename());
  }
  return names;
}

std::vector<pid_t> AllProcesses() {
  std::vector<pid_t> all;
  for (const std::string& name : NamesIn("/proc")) {
    if (const auto process = ParseNumber<pid_t>(name)) all.push_back(*process);
  }
  return all;
}

// Other jobs of the machine may come and go meanwhile: theirs is what somebody still has mapped.
bool IsMapped(const std::string& name) {
  for (const pid_t process : AllProcesses()) {
    std::ifstream maps(fmt::format("/proc/{}/maps", process));
    for (std::string line; std::getline(maps, line);) {
      if (line.ends_with(std::string(kShared) + "/" + name)) return true;
    }
  }
  return false;
}

// Of tests that run beside this one: no rank makes folders there.
bool IsFolder(const std::string& name) {
  std::error_code gone;
  return fs::is_directory(fs::path(kShared) / name, gone);
}

void Nap(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

}  // namespace

std::vector<Transport> Transports(const std::function<bool(const TransportKind&)>& which) {
  std::vector<Transport> names;
  for (const TransportKind& kind : TransportKinds()) {
    if (which(kind)) names.push_back(kind.name);
  }
  return names;
}

bool NeedsMpirun(const Transport& transport) { return !FindTransport(transport)->run; }

bool HasMpi() { return *TRIREME_MPIRUN != '\0'; }

// Below those that the system gives away by itself: one of them could become the port of a rank
// that is asked for none, before the test uses it.
int FreePort() {
  std::random_device random;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    constexpr unsigned kFirst = 12'000, kEnd = 32'000;
    const int port = int(kFirst + random() % (kEnd - kFirst));
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    address.sin_port = htons(uint16_t(port));
    const bool taken = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0;
    close(fd);
    if (!taken) return port;
  }
  ADD_FAILURE() << "no free port";
  return 0;
}

RanksTest::RanksTest()
    : environment_{"env", "TMPDIR=" + At("tmp")}, shared_before_(NamesIn(kShared)) {
  MakeDirectories(At("tmp"));
}

RanksTest::Command RanksTest::Over(const Transport& transport, int ranks,
                                   const Words& words) const {
  const std::string count = std::to_string(ranks);
  if (!NeedsMpirun(transport)) {
    return {words + Words{"--transport", transport, "--ranks", count}, environment_};
  }
  return {words, environment_ +
                     Words{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                           "ASAN_OPTIONS=detect_leaks=0",  // of the library's own
                           TRIREME_MPIRUN, "--oversubscribe", "--bind-to", "none", "-n", count}};
}

std::unique_ptr<Running> RanksTest::StartRanks(const Transport& transport, int ranks,
                                               const Words& words) {
  const Command command = Over(transport, ranks, words);
  return Start(command.words, command.launcher);
}

void RanksTest::TrainRanks(const Transport& transport, int ranks, const Words& words) {
  const Command command = Over(transport, ranks, words);
  Succeed(command.words, command.launcher);
}

std::vector<pid_t> RanksTest::AwaitRanks(Running& running, int ranks) {
  for (const Stopwatch watch; watch.seconds() < kTimeout && !running.Over(); Nap(1)) {
    const pid_t launcher = running.pid();
    const auto text = ReadProcFile(fmt::format("/proc/{0}/task/{0}/children", launcher));
    std::vector<pid_t> children;  // in the order of their births
    for (const std::string& word : Split(text.value_or(""), ' ')) {
      if (const auto child = ParseNumber<pid_t>(word)) children.push_back(*child);
    }
    if (int(children.size()) == ranks) return children;
  }
  return {};
}

std::vector<pid_t> RanksTest::Processes() const {
  std::vector<pid_t> found;
  for (const pid_t process : AllProcesses()) {
    std::error_code error;  // gone, or a zombie
    const auto folder = fs::read_symlink(fmt::format("/proc/{}/cwd", process), error);
    if (!error && folder == fs::path(At("")).parent_path()) found.push_back(process);
  }
  return found;
}

std::string RanksTest::Orphans(double until) {
  for (;; Nap(20)) {
    const std::vector<pid_t> left = Processes();
    if (left.empty() || Now() > until) return fmt::format("{}", fmt::join(left, " "));
  }
}

std::string RanksTest::Leftovers(double until) {
  const std::string orphans = Orphans(until);
  for (;; Nap(20)) {
    std::string files;
    for (const std::string& name : NamesIn(kShared)) {
      if (!shared_before_.contains(name) && !IsFolder(name) && !IsMapped(name)) files += " " + name;
    }
    for (const std::string& name : NamesIn(At("tmp"))) {
      // Open MPI keeps the user's folder, empty.
      std::error_code gone;
      if (!fs::is_empty(At("tmp/" + name), gone) && !gone) files += " " + name;
    }
    if (files.empty() || Now() > until) return orphans + files;
  }
}

int RanksTest::FirstNamed(const std::string& err) {
  static const std::regex named("\\brank (\\d+)");
  for (const std::string& line : Split(err, '\n')) {
    std::smatch match;
    if (line.find(" ranks: ") == line.npos && std::regex_search(line, match, named)) {
      return ParseNumber<int>(match[1].str()).value_or(-1);
    }
  }
  return -1;
}

int64_t RanksTest::SavedStep(const std::string& run) const {
  if (!Exists(At(run + "/checkpoints/latest"))) return 0;
  return ParseJson(Read(Latest(run) + "/state.json"), "state").At("step").AsInt();
}

std::vector<RanksTest::ClientCounts> RanksTest::SavedClients(const std::string& run) const {
  const Json state = ParseJson(Read(Latest(run) + "/state.json"), "state");
  const std::vector<Json>& numbers = state.At("values").At("centre.clients").Items();
  std::vector<ClientCounts> clients;
  constexpr size_t kHead = 5;  // then as many counts of staleness as the last of these says
  for (size_t i = 0; i + kHead <= numbers.size(); i += kHead + size_t(numbers[i + 4].AsInt())) {
    clients.push_back({.updates = numbers[i].AsInt(),
                       .samples = numbers[i + 1].AsInt(),
                       .refused = numbers[i + 2].AsInt(),
                       .removed = numbers[i + 3].AsInt()});
  }
  return clients;
}

bool RanksTest::AwaitClients(
    Running& running, const std::string& run,
    const std::function<bool(const std::vector<ClientCounts>&)>& enough) const {
  for (const Stopwatch watch; watch.seconds() < kTimeout && !running.Over(); Nap(10)) {
    try {
      if (enough(SavedClients(run))) return true;
    } catch (const std::exception&) {  // there is no checkpoint yet, or it is being replaced
    }
  }
  return false;
}

bool RanksTest::KillRank(Running& running, const std::string& name, int signal) {
  const std::string list = fmt::format("/proc/{}/task/{}/children", running.pid(), running.pid());
  for (const Stopwatch watch; watch.seconds() < kTimeout && !running.Over();) {
    for (const std::string& word : Split(ReadProcFile(list).value_or(""), ' ')) {
      const auto pid = ParseNumber<int>(word);
      if (!pid || ReadProcFile(fmt::format("/proc/{}/comm", *pid)) != name + "\n") continue;
      return kill(*pid, signal) == 0;
    }
    Nap(10);  // it is about to be started
  }
  return false;
}

int RanksTest::KillRanks(Running& running, const std::vector<std::string>& names,
                         const std::function<double()>& pause_s) {
  int killed = 0;
  for (const std::string& name : names) {
    SleepFor(pause_s());
    if (running.Over()) break;
    killed += KillRank(running, name);
  }
  return killed;
}

void RanksTest::ExpectIrisCountedOnce(const std::string& run, int64_t epochs) const {
  constexpr int64_t kSamples = 120;  // to train with
  const Json summary = Summary(run);
  EXPECT_EQ(summary.At("epochs").AsInt(), epochs);
  EXPECT_EQ(summary.At("samples").AsInt(), epochs * kSamples);
  int64_t samples = 0, updates = 0;
  for (const Json& client : summary.At("clients").Items()) {
    samples += client.At("samples").AsInt();
    updates += client.At("updates").AsInt();
  }
  EXPECT_EQ(samples, epochs * kSamples);
  EXPECT_EQ(updates, summary.At("updates").AsInt());
  const auto lines = Epochs(run);
  ASSERT_EQ(int64_t(lines.size()), epochs);
  for (int64_t i = 0; i < epochs; ++i) EXPECT_EQ(lines[size_t(i)].At("epoch").AsInt(), i + 1);
}

}  // namespace trireme::whole
