#include "cli/kubernetes_files.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/text.h"
#include "cli/yaml.h"

namespace trireme {
namespace {

KubernetesJob SomeJob() {
  return {.name = "a",
          .ranks = 4,
          .image = "registry.example:5000/team/trireme:0.5",
          .cpus_per_rank = 8,
          .memory = "16Gi",
          .claim = "training",
          .secret = "oars",
          .run = "runs/a",
          .words = {"train", "iris", "--out", "runs/a"}};
}

// "" where it is accepted.
template <class T>
std::string Refusal(T KubernetesJob::*member, T value) {
  KubernetesJob job = SomeJob();
  job.*member = std::move(value);
  try {
    KubernetesText(job);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

std::string Refused(std::string KubernetesJob::*member, const std::string& value) {
  return Refusal<std::string>(member, value);
}

// What lies at "spec.template.spec.0.name".
const Json& At(const Json& object, const std::string& path) {
  const Json* found = &object;
  for (const std::string& word : Split(path, '.')) {
    const auto number = ParseNumber<size_t>(word);
    found = number ? &found->Items().at(*number) : &found->At(word);
  }
  return *found;
}

TEST(KubernetesFiles, HaveAServiceASecretAndAJob) {
  const std::vector<Json> objects = KubernetesObjects(SomeJob());
  ASSERT_EQ(objects.size(), 3u);
  const Json &service = objects[0], &secret = objects[1], &job = objects[2];
  EXPECT_EQ(At(service, "kind").AsString(), "Service");
  EXPECT_EQ(At(service, "spec.clusterIP").AsString(), "None");
  EXPECT_TRUE(At(service, "spec.publishNotReadyAddresses").AsBool());
  EXPECT_EQ(At(secret, "kind").AsString(), "Secret");
  EXPECT_EQ(At(secret, "stringData.secret").AsString(), "oars");
  EXPECT_EQ(At(job, "kind").AsString(), "Job");
  for (const Json& each : objects) EXPECT_EQ(At(each, "metadata.name").AsString(), "a");
  // The service names exactly the pods of the job.
  const Json& labels = At(job, "spec.template.metadata.labels");
  EXPECT_EQ(labels.Text(), At(service, "spec.selector").Text());
  EXPECT_EQ(labels.Text(), At(job, "metadata.labels").Text());
}

TEST(KubernetesFiles, TheJobHasAPodForEachRank) {
  const Json job = KubernetesObjects(SomeJob())[2];
  EXPECT_EQ(At(job, "spec.completions").AsInt(), 4);
  EXPECT_EQ(At(job, "spec.parallelism").AsInt(), 4);
  EXPECT_EQ(At(job, "spec.completionMode").AsString(), "Indexed");
  const Json& pod = At(job, "spec.template.spec");
  EXPECT_EQ(At(pod, "restartPolicy").AsString(), "Never");  // else no rule for exit codes
  EXPECT_EQ(At(pod, "subdomain").AsString(), "a");
  EXPECT_EQ(At(pod, "terminationGracePeriodSeconds").AsInt(), 120);
  const Json& container = At(pod, "containers.0");
  EXPECT_EQ(At(container, "args").Text(),
            R"(["launch","rank","--","train","iris","--out","runs/a"])");
  EXPECT_EQ(At(container, "workingDir").AsString(), "/trireme");
  EXPECT_EQ(At(container, "resources.limits").Text(), R"({"cpu":"8","memory":"16Gi"})");
  EXPECT_EQ(At(container, "resources.requests").Text(), At(container, "resources.limits").Text());
  EXPECT_EQ(At(container, "env.0").Text(), R"({"name":"TRIREME_WORLD","value":"4"})");
  EXPECT_EQ(At(container, "env.1").Text(), R"({"name":"TRIREME_MEET","value":"a-0.a:7117"})");
  EXPECT_EQ(At(container, "env.2.valueFrom.secretKeyRef").Text(), R"({"name":"a","key":"secret"})");
}

TEST(KubernetesFiles, NothingIsRootAndMemoryIsShared) {
  KubernetesJob given = SomeJob();
  given.user = 4711;
  const Json job = KubernetesObjects(given)[2];
  const Json& pod = At(job, "spec.template.spec");
  EXPECT_TRUE(At(pod, "securityContext.runAsNonRoot").AsBool());
  EXPECT_EQ(At(pod, "securityContext.runAsUser").AsInt(), 4711);
  EXPECT_EQ(At(pod, "securityContext.fsGroup").AsInt(), 4711);
  EXPECT_EQ(At(pod, "containers.0.securityContext.capabilities.drop").Text(), R"(["ALL"])");
  EXPECT_FALSE(At(pod, "containers.0.securityContext.allowPrivilegeEscalation").AsBool());
  EXPECT_FALSE(At(pod, "automountServiceAccountToken").AsBool());
  EXPECT_EQ(At(pod, "volumes.0.persistentVolumeClaim.claimName").AsString(), "training");
  EXPECT_EQ(At(pod, "volumes.1.emptyDir").Text(), R"({"medium":"Memory","sizeLimit":"16Gi"})");
  EXPECT_EQ(At(pod, "containers.0.volumeMounts.1").Text(),
            R"({"name":"shm","mountPath":"/dev/shm"})");
  given.claim = "";
  EXPECT_EQ(At(KubernetesObjects(given)[2], "spec.template.spec.volumes.0.emptyDir").Text(), "{}");
}

TEST(KubernetesFiles, WrongUsageEndsTheJobAndWhoIsStoppedComesBack) {
  const Json job = KubernetesObjects(SomeJob())[2];
  const Json& rules = At(job, "spec.podFailurePolicy.rules");
  ASSERT_EQ(rules.Items().size(), 3u);
  EXPECT_EQ(At(rules, "0.action").AsString(), "FailJob");
  EXPECT_EQ(At(rules, "0.onExitCodes.values").Text(), "[2]");
  EXPECT_EQ(At(rules, "0.onExitCodes.containerName").AsString(),
            At(job, "spec.template.spec.containers.0.name").AsString());
  EXPECT_EQ(At(rules, "1.action").AsString(), "Ignore");
  EXPECT_EQ(At(rules, "1.onExitCodes.values").Text(), "[143]");
  EXPECT_EQ(At(rules, "2.action").AsString(), "Ignore");
  EXPECT_EQ(At(rules, "2.onPodConditions.0.type").AsString(), "DisruptionTarget");
  EXPECT_EQ(At(job, "spec.backoffLimit").AsInt(), 6);
}

TEST(KubernetesFiles, WordsArriveAsTheyAre) {
  KubernetesJob job = SomeJob();
  job.words = {"train", "--out", "a $(HOME) $$ \"b\"\n"};
  EXPECT_EQ(At(KubernetesObjects(job)[2], "spec.template.spec.containers.0.args.5").AsString(),
            "a $$(HOME) $$$$ \"b\"\n");
}

TEST(KubernetesFiles, ForbiddenNamesAreRefused) {
  for (const char* name : {"a", "a-1", "training-of-iris"}) {
    EXPECT_EQ(Refused(&KubernetesJob::name, name), "") << name;
  }
  for (const char* name : {"", "A", "1a", "-a", "a-", "a_b", "a.b", "a b", "\xc3\xa4"}) {
    EXPECT_TRUE(Refused(&KubernetesJob::name, name).starts_with("--name must be")) << name;
  }
  // a-3 is the last host: 63 letters in all.
  EXPECT_EQ(Refused(&KubernetesJob::name, std::string(61, 'a')), "");
  EXPECT_TRUE(
      Refused(&KubernetesJob::name, std::string(62, 'a')).starts_with("--name must be up to 61"));
  for (const char* claim : {"a", "0a.b-c.d", "a.b"}) {
    EXPECT_EQ(Refused(&KubernetesJob::claim, claim), "") << claim;
  }
  for (const char* claim : {"A", "-a", "a-", "a..b", ".a", "a.", "a-.b", "a.-b", "a/b", "a b"}) {
    EXPECT_TRUE(Refused(&KubernetesJob::claim, claim).starts_with("--claim must be")) << claim;
  }
}

TEST(KubernetesFiles, NamesOfRunsBecomeNamesOfJobs) {
  EXPECT_EQ(KubernetesName("Iris_3.b", 4), "iris-3-b");
  EXPECT_EQ(KubernetesName("2026-run", 4), "run");
  EXPECT_EQ(KubernetesName("1234", 4), "trireme");
  EXPECT_EQ(KubernetesName(std::string(70, 'a'), 4), std::string(61, 'a'));
  EXPECT_EQ(KubernetesName(std::string(58, 'a') + "----b", 1000), std::string(58, 'a'));
}

TEST(KubernetesFiles, ImagesNeedATagOrADigest) {
  const std::string digest = "@sha256:" + std::string(64, 'a');
  for (const std::string& image : {std::string("trireme:1"), std::string("host:5000/a/b_c:v1.2-x"),
                                   "host/a" + digest, "a:1" + digest}) {
    EXPECT_EQ(Refused(&KubernetesJob::image, image), "") << image;
  }
  for (const char* image : {"trireme", "host:5000/trireme", "host/a/b"}) {
    EXPECT_TRUE(Refused(&KubernetesJob::image, image).starts_with("--image needs a tag")) << image;
  }
  for (const char* image : {"", "a b:1", "A:1", "a:", ":1", "/a:1", "a//b:1", "a:1:2", "a:.1",
                            "a@sha256:12", "a@md5:1", "a:1\n"}) {
    EXPECT_TRUE(Refused(&KubernetesJob::image, image).starts_with("--image ")) << image;
  }
}

TEST(KubernetesFiles, MemoryNeedsAUnit) {
  for (const char* memory : {"1Gi", "500Mi", "64G", "2Ti", "1000000k"}) {
    EXPECT_EQ(Refused(&KubernetesJob::memory, memory), "") << memory;
  }
  EXPECT_TRUE(Refused(&KubernetesJob::memory, "16").starts_with("--memory needs a unit"));
  EXPECT_NE(Refused(&KubernetesJob::memory, "500m").find("thousandths"), std::string::npos);
  for (const char* memory :
       {"", "Gi", "1GB", "1gi", "-1Gi", "1.5Gi", "1 Gi", "0Gi", "1e3", "9999999999999Gi"}) {
    EXPECT_TRUE(Refused(&KubernetesJob::memory, memory).starts_with("--memory ")) << memory;
  }
}

TEST(KubernetesFiles, NumbersAndPathsOutOfRangeAreRefused) {
  EXPECT_TRUE(Refusal(&KubernetesJob::ranks, 0).starts_with("--ranks must be between 1"));
  EXPECT_TRUE(Refusal(&KubernetesJob::ranks, 1025).starts_with("--ranks"));
  EXPECT_TRUE(Refusal(&KubernetesJob::cpus_per_rank, 0).starts_with("--cpus-per-rank"));
  EXPECT_TRUE(Refusal(&KubernetesJob::grace_s, 0).starts_with("--grace"));
  EXPECT_TRUE(Refusal(&KubernetesJob::backoff_limit, -1).starts_with("--backoff-limit"));
  EXPECT_TRUE(Refusal(&KubernetesJob::user, 0).starts_with("--user must be between 1"));
  EXPECT_EQ(Refused(&KubernetesJob::run, "/trireme/a"), "");
  for (const char* run :
       {"/runs/a", "../a", ".", "/trireme", "/trireme/", "/trireme/../a", "a/../../b"}) {
    EXPECT_NE(Refused(&KubernetesJob::run, run), "") << run;
  }
}

TEST(Yaml, StringsStayStrings) {
  Json object = Json::Object();
  object.Add("a", Json::Object());
  object.Add("b.c/d", 3).Add("e", "4").Add("f", "true").Add("g", "x: y").Add("h", true);
  object.Add("i", "No").Add("j", "plain").Add("k", "two\nlines \"quoted\"").Add("l", "1e3");
  EXPECT_EQ(YamlText(object),
            "a: {}\nb.c/d: 3\n\"e\": \"4\"\nf: \"true\"\ng: \"x: y\"\nh: true\ni: \"No\"\n"
            "j: plain\nk: \"two\\nlines \\\"quoted\\\"\"\nl: \"1e3\"\n");
}

TEST(Yaml, ListsAndMembersAreIndented) {
  Json inner = Json::Object();
  inner.Add("x", Json(std::vector<int>{1, 2})).Add("z", Json::Array());
  Json list = Json::Array();
  list.Append(inner).Append("word");
  Json object = Json::Object();
  object.Add("m", list);
  EXPECT_EQ(YamlText(object), "m:\n  - x:\n      - 1\n      - 2\n    z: []\n  - word\n");
}

}  // namespace
}  // namespace trireme
