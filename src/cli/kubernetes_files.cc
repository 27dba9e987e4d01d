#include "cli/kubernetes_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/text.h"
#include "base/toml.h"
#include "cli/yaml.h"
#include "transport/address.h"

namespace trireme {
namespace {

constexpr size_t kLongestLabel = 63;  // of a name in DNS
constexpr int kNeverWorks = 2;        // exit codes of train: the command is wrong,
constexpr int kStopped = 143;         // a signal stopped it after a checkpoint

bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameChar(char c) { return IsLower(c) || IsDigit(c) || c == '-'; }

size_t LongestName(int ranks) {  // the last pod's host is NAME-RANK
  return kLongestLabel - 1 - std::to_string(std::max(ranks, 1) - 1).size();
}

void CheckBetween(std::string_view flag, int value, int least, int most) {
  if (value >= least && value <= most) return;
  throw UsageError("{} must be between {} and {}, got {}", flag, least, most, value);
}

// A Service wants the strictest kind of name.
void CheckName(const std::string& name, int ranks) {
  const size_t longest = LongestName(ranks);
  if (!name.empty() && name.size() <= longest && IsLower(name.front()) && name.back() != '-' &&
      std::all_of(name.begin(), name.end(), IsNameChar)) {
    return;
  }
  throw UsageError(
      "--name must be up to {} lower-case letters, digits and '-', begin with a letter and not end "
      "with '-' (rules of Kubernetes), got {}",
      longest, QuoteToml(name));
}

void CheckClaim(const std::string& claim) {
  constexpr size_t kLongest = 253;
  bool good = claim.size() <= kLongest;
  char before = '.';  // what begins or ends a part is a letter or a digit
  for (const char c : claim + ".") {
    const bool inside = IsLower(c) || IsDigit(c);
    if (!inside && (before == '.' || (c == '.' && before == '-'))) good = false;
    if (!inside && c != '-' && c != '.') good = false;
    before = c;
  }
  if (good) return;
  throw UsageError(
      "--claim must be the name of a PersistentVolumeClaim (lower-case letters, digits, '-' and "
      "'.'), got {}",
      QuoteToml(claim));
}

// [HOST[:PORT]/]PATH:TAG, or with a digest.
void CheckImage(const std::string& image) {
  const auto refuse = [&](std::string_view why) {
    throw UsageError("--image {}, got {}", why, QuoteToml(image));
  };
  const auto plain = [](char c) {
    return IsNameChar(c) || (c >= 'A' && c <= 'Z') ||
           std::string_view("._/:@").find(c) != std::string_view::npos;
  };
  if (image.empty() || !std::all_of(image.begin(), image.end(), plain)) {
    refuse("must be [HOST/]NAME:TAG");
  }
  const std::string named = image.substr(0, image.find('@'));
  const size_t slash = named.rfind('/') == named.npos ? 0 : named.rfind('/') + 1;
  const size_t colon = named.find(':', slash);
  const std::string tag = colon == named.npos ? "" : named.substr(colon + 1);
  const std::string digest = named.size() == image.size() ? "" : image.substr(named.size() + 1);
  if (tag.empty() && digest.empty()) {
    refuse("needs a tag or a digest, so that all pods run the same program (NAME:TAG)");
  }
  const std::string last = named.substr(slash, colon == named.npos ? colon : colon - slash);
  const bool bad_name =
      last.empty() || named.front() == '/' || named.find("//") != named.npos ||
      std::any_of(last.begin(), last.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  const bool bad_tag = (colon != named.npos && tag.empty()) || tag.find(':') != tag.npos ||
                       tag.starts_with('.') || tag.starts_with('-') || tag.size() > 128;
  constexpr std::string_view kSha = "sha256:";
  const bool bad_digest =
      named.size() != image.size() &&
      (!digest.starts_with(kSha) || digest.size() != kSha.size() + 64 ||
       digest.find_first_not_of("0123456789abcdef", kSha.size()) != digest.npos);
  if (bad_name || bad_tag || bad_digest) refuse("must be [HOST/]NAME:TAG");
}

void CheckMemory(const std::string& memory) {
  const size_t digits = memory.find_first_not_of("0123456789");
  const std::string number = memory.substr(0, digits);
  const std::string unit = digits == memory.npos ? "" : memory.substr(digits);
  const auto refuse = [&](std::string_view why) {
    throw UsageError("--memory {}, such as 16Gi or 500Mi, got {}", why, QuoteToml(memory));
  };
  if (number.empty()) refuse("must be a whole number and a unit");
  if (unit.empty()) refuse("needs a unit: without one Kubernetes takes it for bytes");
  if (unit == "m") refuse("must be a number and a unit: \"m\" are thousandths of a byte");
  constexpr std::string_view kUnits[] = {"Ki", "Mi", "Gi", "Ti", "k", "M", "G", "T"};
  if (std::find(std::begin(kUnits), std::end(kUnits), unit) == std::end(kUnits)) {
    refuse("must have a unit of Kubernetes (Ki, Mi, Gi, Ti, k, M, G, T)");
  }
  if (number.find_first_not_of('0') == number.npos || number.size() > 12) {
    refuse("must be a number of some size");
  }
}

// Elsewhere a pod cannot write, and what it writes there goes with it.
void CheckRun(const std::string& run) {
  const auto path = (std::filesystem::path(kPodFolder) / run).lexically_normal().string();
  if (path.starts_with(std::string(kPodFolder) + "/") && path.size() > sizeof(kPodFolder)) return;
  throw UsageError(
      "train's --out must be below {}, where the volume is, or a relative path, got {}", kPodFolder,
      QuoteToml(run));
}

Json Object(std::initializer_list<std::pair<const char*, Json>> members) {
  Json object = Json::Object();
  for (const auto& [key, value] : members) object.Add(key, value);
  return object;
}

Json Array(std::initializer_list<Json> items) {
  Json array = Json::Array();
  for (const Json& item : items) array.Append(item);
  return array;
}

Json Labels(const KubernetesJob& job) {
  return Object({{"app.kubernetes.io/name", "trireme"}, {"app.kubernetes.io/instance", job.name}});
}

Json Metadata(const KubernetesJob& job) {
  return Object({{"name", job.name}, {"labels", Labels(job)}});
}

// The pods' names resolve as soon as they have addresses: a rank is ready when all have met.
Json Service(const KubernetesJob& job) {
  return Object(
      {{"apiVersion", "v1"},
       {"kind", "Service"},
       {"metadata", Metadata(job)},
       {"spec", Object({{"clusterIP", "None"},
                        {"publishNotReadyAddresses", true},
                        {"selector", Labels(job)},
                        {"ports", Array({Object({{"name", "meet"}, {"port", kPort}})})}})}});
}

Json Secret(const KubernetesJob& job) {
  return Object({{"apiVersion", "v1"},
                 {"kind", "Secret"},
                 {"metadata", Metadata(job)},
                 {"type", "Opaque"},
                 {"stringData", Object({{"secret", job.secret}})}});
}

// Kubernetes replaces $(NAME) in words, and $$ by $.
std::string Literal(const std::string& word) {
  std::string text;
  for (const char c : word) text += c == '$' ? std::string("$$") : std::string(1, c);
  return text;
}

Json Container(const KubernetesJob& job) {
  Json words = Array({"launch", "rank", "--"});
  for (const std::string& word : job.words) words.Append(Literal(word));
  // As much as is asked for and no more: the program counts its threads by it.
  const Json amounts = Object({{"cpu", std::to_string(job.cpus_per_rank)}, {"memory", job.memory}});
  const auto variable = [](const char* name, const std::string& value) {
    return Object({{"name", name}, {"value", value}});
  };
  const Json key = Object({{"secretKeyRef", Object({{"name", job.name}, {"key", "secret"}})}});
  const std::string meet = fmt::format("{0}-0.{0}:{1}", job.name, kPort);
  const auto mount = [](const char* name, const char* path) {
    return Object({{"name", name}, {"mountPath", path}});
  };
  return Object(
      {{"name", "trireme"},
       {"image", job.image},
       {"command", Array({"trireme"})},
       {"args", words},
       {"workingDir", kPodFolder},
       // The rank itself is JOB_COMPLETION_INDEX, which Kubernetes sets.
       {"env",
        Array({variable("TRIREME_WORLD", std::to_string(job.ranks)), variable("TRIREME_MEET", meet),
               Object({{"name", "TRIREME_SECRET"}, {"valueFrom", key}}),
               variable("TRIREME_DATA", std::string(kPodFolder) + "/data"),
               variable("HOME", "/tmp")})},
       {"ports", Array({Object({{"name", "meet"}, {"containerPort", kPort}})})},
       {"resources", Object({{"requests", amounts}, {"limits", amounts}})},
       {"volumeMounts",
        Array({mount("work", kPodFolder), mount("shm", "/dev/shm"), mount("tmp", "/tmp")})},
       {"securityContext", Object({{"allowPrivilegeEscalation", false},
                                   {"readOnlyRootFilesystem", true},
                                   {"capabilities", Object({{"drop", Array({"ALL"})}})}})}});
}

Json Pod(const KubernetesJob& job) {
  const Json here = Object({{"name", "work"}, {"emptyDir", Json::Object()}});
  const Json claimed =
      Object({{"name", "work"}, {"persistentVolumeClaim", Object({{"claimName", job.claim}})}});
  const Json shm = Object({{"medium", "Memory"}, {"sizeLimit", job.memory}});
  return Object(
      {{"restartPolicy", "Never"},
       {"subdomain", job.name},
       {"terminationGracePeriodSeconds", job.grace_s},
       {"automountServiceAccountToken", false},
       {"enableServiceLinks", false},
       {"securityContext", Object({{"runAsNonRoot", true},
                                   {"runAsUser", job.user},
                                   {"runAsGroup", job.user},
                                   {"fsGroup", job.user},
                                   {"fsGroupChangePolicy", "OnRootMismatch"},
                                   {"seccompProfile", Object({{"type", "RuntimeDefault"}})}})},
       {"containers", Array({Container(job)})},
       {"volumes",
        Array({job.claim.empty() ? here : claimed, Object({{"name", "shm"}, {"emptyDir", shm}}),
               Object({{"name", "tmp"}, {"emptyDir", Json::Object()}})})}});
}

// A command that can never work ends the job. A pod that was stopped or taken away does not count
// as a failure; one that fails does, and is replaced.
Json FailurePolicy() {
  // The schema of 1.28 wants both members; a rule by exit codes has no conditions.
  const auto ends_with = [](const char* action, int code) {
    return Object(
        {{"action", action},
         {"onExitCodes",
          Object({{"containerName", "trireme"}, {"operator", "In"}, {"values", Array({code})}})},
         {"onPodConditions", Json::Array()}});
  };
  const Json taken = Object({{"type", "DisruptionTarget"}, {"status", "True"}});
  return Object(
      {{"rules", Array({ends_with("FailJob", kNeverWorks), ends_with("Ignore", kStopped),
                        Object({{"action", "Ignore"}, {"onPodConditions", Array({taken})}})})}});
}

Json IndexedJob(const KubernetesJob& job) {
  return Object(
      {{"apiVersion", "batch/v1"},
       {"kind", "Job"},
       {"metadata", Metadata(job)},
       {"spec", Object({{"completions", job.ranks},
                        {"parallelism", job.ranks},
                        {"completionMode", "Indexed"},
                        {"backoffLimit", job.backoff_limit},
                        {"podFailurePolicy", FailurePolicy()},
                        {"template", Object({{"metadata", Object({{"labels", Labels(job)}})},
                                             {"spec", Pod(job)}})}})}});
}

}  // namespace

std::string KubernetesName(const std::string& name, int ranks) {
  std::string text = ToLower(name);
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !IsNameChar(c); }, '-');
  const size_t letter = std::find_if(text.begin(), text.end(), IsLower) - text.begin();
  text = text.substr(letter).substr(0, LongestName(ranks));
  while (text.ends_with('-')) text.pop_back();
  return text.empty() ? "trireme" : text;
}

void CheckKubernetesJob(const KubernetesJob& job) {
  CheckBetween("--ranks", job.ranks, 1, 1024);  // transport.ranks
  CheckBetween("--cpus-per-rank", job.cpus_per_rank, 1, 1 << 16);
  CheckBetween("--grace", job.grace_s, 1, 7 * 24 * 3600);
  CheckBetween("--backoff-limit", job.backoff_limit, 0, 1'000'000);
  CheckBetween("--user", job.user, 1, 0x7ffffffe);
  CheckName(job.name, job.ranks);
  CheckImage(job.image);
  CheckMemory(job.memory);
  if (!job.claim.empty()) CheckClaim(job.claim);
  CheckRun(job.run);
}

std::vector<Json> KubernetesObjects(const KubernetesJob& job) {
  return {Service(job), Secret(job), IndexedJob(job)};
}

std::string KubernetesText(const KubernetesJob& job) {
  CheckKubernetesJob(job);
  std::string text =
      "# Written by `trireme launch kubernetes`. Start it with: kubectl apply -f FILE\n"
      "# It holds the secret by which its ranks know each other.\n";
  for (const Json& object : KubernetesObjects(job)) text += "---\n" + YamlText(object);
  return text;
}

}  // namespace trireme
