#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "record/checkpoint.h"
#include "record/checkpoint_folder.h"
#include "record/state_files.h"

namespace trireme {
namespace {

constexpr char kReplaced[] = ".replaced";

std::string ReplacedName(const std::string& directory, int64_t step) {
  return directory + "/." + StepName(step) + kReplaced;
}

void Rename(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) != 0) {
    throw Error("{}: cannot rename to {}: {}", from, to, std::generic_category().message(errno));
  }
}

// Puts the finished folder at step's name. A checkpoint of this step may be there already, when a
// run went back to an older one or was resumed at its end: then the old one gets the finished
// folder's name or ReplacedName, and goes when the new one is safe.
void Place(const std::string& finished, const std::string& directory, int64_t step) {
  const std::string place = directory + "/" + StepName(step);
  if (Exists(place)) {
    if (syscall(SYS_renameat2, AT_FDCWD, finished.c_str(), AT_FDCWD, place.c_str(),
                RENAME_EXCHANGE) == 0) {
      return;
    }
    // File systems that cannot (NFS): killed between the two, Recover puts the old one back.
    Rename(place, ReplacedName(directory, step));
  }
  Rename(finished, place);
}

void Recover(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  for (const std::string& name : names) {
    if (!name.starts_with('.') || !name.ends_with(kReplaced)) continue;
    const std::string old = directory + "/" + name;
    const std::string place = directory + "/" + name.substr(1, name.size() - sizeof(kReplaced));
    Exists(place) ? RemoveTree(old) : RenameDurably(old, place);
  }
}

void Switch(const std::string& directory, const char* name, int64_t step) {
  const std::string link = directory + "/" + name;
  const std::string beside = NameBeside(link);
  if (symlink(StepName(step).c_str(), beside.c_str()) != 0) {
    throw Error("{}: cannot create the link: {}", link, std::generic_category().message(errno));
  }
  RenameDurably(beside, link);
}

void SwitchBest(const std::string& directory, int64_t step) {
  if (LinkIn(directory, kBest) == step || !Exists(directory + "/" + StepName(step))) return;
  Switch(directory, kBest, step);
}

// `latest` and the keep - 1 before it stay, and the best. Later steps are of a future that was
// given up when the run went back to an older checkpoint.
void Prune(const std::string& directory, int64_t latest, int keep) {
  const std::vector<int64_t> steps = StepsIn(directory);
  const auto best = LinkIn(directory, kBest);
  const auto end = std::upper_bound(steps.begin(), steps.end(), latest);
  const auto begin = end - std::min<std::ptrdiff_t>(keep, end - steps.begin());
  for (auto step = steps.begin(); step != steps.end(); ++step) {
    const bool stays = step < end && (step >= begin || *step == best);
    if (!stays) RemoveTree(directory + "/" + StepName(*step));
  }
}

Json Describe(const std::string& path) {
  Json file = Json::Object();
  file.Add("bytes", InputFile(path).size()).Add("sha256", Sha256OfFile(path));
  return file;
}

// A folder with an unfinished name. What bears that name at the end is removed: an unfinished
// checkpoint, the one that it was exchanged for, or nothing.
struct UnfinishedFolder {
  // Nothing above it is made: whoever removed a run's folder does not find it there again.
  explicit UnfinishedFolder(const std::string& finished) : path(NameBeside(finished)) {
    if (mkdir(path.c_str(), 0777) == 0) return;
    throw Error("{}: cannot create the folder: {}", path, std::generic_category().message(errno));
  }
  ~UnfinishedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;

  const std::string path;
};

class FolderWriter : public CheckpointWriter {
 public:
  FolderWriter(std::string directory, int64_t step, int keep, const Metadata& metadata)
      : directory_(std::move(directory)),
        step_(step),
        keep_(keep),
        folder_(directory_ + "/" + StepName(step)),
        model_(folder_.path + "/" + kModelFile, metadata, values_),
        state_(folder_.path + "/" + kOptimizerFile, {}, values_) {}

  StateWriter& model() override { return model_; }
  StateWriter& state() override { return state_; }

  std::string Commit(std::optional<int64_t> best) override {
    model_.Finish();
    state_.Finish();
    WriteState();
    SyncDirectory(folder_.path);
    Place(folder_.path, directory_, step_);
    Switch(directory_, kLatest, step_);  // syncs the names, the new folder's, too
    if (best) SwitchBest(directory_, *best);
    RemoveTree(ReplacedName(directory_, step_));
    Prune(directory_, step_, keep_);
    return directory_ + "/" + StepName(step_);
  }

 private:
  void WriteState() {
    Json files = Json::Object();
    for (const char* name : {kModelFile, kOptimizerFile}) {
      files.Add(name, Describe(folder_.path + "/" + name));
    }
    Json state = Json::Object();
    state.Add("format", kStateFormat).Add("step", step_).Add("files", std::move(files));
    state.Add("values", values_);
    state.Add("sha256", Sha256Hex(state.Text()));
    OutputFile file(folder_.path + "/" + kStateFile);
    file.Write(state.Text(2) + "\n");
    file.Sync();
    file.Close();
  }

  std::string directory_;
  int64_t step_;
  int keep_;
  UnfinishedFolder folder_;
  Json values_ = Json::Object();
  StateFileWriter model_, state_;
};

}  // namespace

CheckpointStore::CheckpointStore(std::string directory, int keep, std::optional<int64_t> best)
    : directory_(std::move(directory)), keep_(keep) {
  if (keep_ < 1) throw UsageError("trainer.keep must be at least 1, got {}", keep_);
  MakeDirectories(directory_);
  Recover(directory_);
  RemoveLeftovers(directory_);
  if (best && Exists(FolderOf(*best))) {
    SwitchBest(directory_, *best);
  } else if (Exists(directory_ + "/" + kBest)) {
    std::filesystem::remove(directory_ + "/" + kBest);
  }
}

std::string CheckpointStore::FolderOf(int64_t step) const {
  return directory_ + "/" + StepName(step);
}

void CheckpointStore::SetBest(int64_t step) {
  SwitchBest(directory_, step);
  if (const auto latest = LinkIn(directory_, kLatest)) Prune(directory_, *latest, keep_);
}

void CheckpointStore::ReturnTo(int64_t step) {
  Switch(directory_, kLatest, step);
  Prune(directory_, step, keep_);
}

std::unique_ptr<CheckpointWriter> CheckpointStore::Begin(int64_t step, const Metadata& metadata) {
  mkdir(directory_.c_str(), 0777);  // again, if somebody has made room
  return std::make_unique<FolderWriter>(directory_, step, keep_, metadata);
}

}  // namespace trireme
