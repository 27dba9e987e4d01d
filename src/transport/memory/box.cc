#include "transport/memory/box.h"

#include <bit>

#include "base/start_thread.h"
#include "transport/memory/mapped.h"

namespace trireme {
namespace {

constexpr double kSweep_s = 0.25;  // between looks at whether mapped clients live

std::shared_ptr<MemoryImage> ImageFor(const MemoryBoxSetup& setup) {
  return setup.file.empty() ? MemoryImage::Anonymous(setup.bytes)
                            : MemoryImage::File(setup.file, setup.bytes);
}

}  // namespace

MemoryBox::MemoryBox(const MemoryBoxSetup& setup) : MemoryBox(ImageFor(setup), setup) {}

MemoryBox::MemoryBox(std::shared_ptr<MemoryImage> image, const MemoryBoxSetup& setup)
    : setup_(setup), image_(std::move(image)), store_(image_, setup.threads, setup.timeout_s) {
  BoxHeader& head = image_->header();
  head.closed.store(0);
  for (uint32_t s = 0; s < kMostSessions; ++s) {  // words that a killed box did not answer
    head.mail[s / 64].fetch_or(uint64_t{1} << s % 64);
  }
  thread_ = StartThread("the thread of the memory box",
                        [this](std::stop_token stop) { Serve(std::move(stop)); });
}

MemoryBox::~MemoryBox() {
  BoxHeader& head = image_->header();
  thread_.request_stop();
  head.posted.Notify();
  thread_.join();
  head.closed.store(1);
  for (SessionRecord& session : head.sessions) session.answered.Notify();
  for (RegionRecord& region : head.regions) region.changed.Notify();
}

std::unique_ptr<Memory> MemoryBox::Connect() { return ConnectMapped(image_, setup_.timeout_s); }

void MemoryBox::Serve(std::stop_token stop) {
  BoxHeader& head = image_->header();
  const int spins = SpinsFor(2);
  Deadline sweep = After(kSweep_s);
  while (!stop.stop_requested()) {
    const uint32_t count = head.posted.Count();
    AnswerMail();
    if (After(0) >= sweep) {
      store_.EndDead();
      sweep = After(kSweep_s);
    }
    head.posted.Wait(count, sweep, spins);
  }
}

void MemoryBox::AnswerMail() {
  BoxHeader& head = image_->header();
  for (uint32_t group = 0; group < kMostSessions / 64; ++group) {
    for (uint64_t mail = head.mail[group].exchange(0); mail != 0; mail &= mail - 1) {
      const uint32_t number = group * 64 + uint32_t(std::countr_zero(mail));
      SessionRecord& session = image_->session(number);
      if (session.client.load() == 0 || session.posted.load() == 0) continue;
      const Word word = session.word;  // what is checked is what is done
      const Reply answer = store_.Do(number, word);
      if (word.kind == WordKind::kLeave) continue;
      session.answer = answer;
      session.posted.store(0);
      session.answered.Notify();
    }
  }
}

}  // namespace trireme
