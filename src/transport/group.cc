#include "transport/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/assert.h"
#include "flat/cpu/loops.h"
#include "transport/shared_memory.h"

namespace trireme {
namespace {

constexpr Tag kSplitTag = kTags - 1;

// A part of a group: the same wires and the same memory, other ranks, other tags.
class Part : public Group, private SharedMemory {
 public:
  Part(Group& root, std::vector<int> members, int rank, int scope)
      : root_(root), members_(std::move(members)), rank_(rank), scope_(scope) {}

  int rank() const override { return rank_; }
  int size() const override { return int(members_.size()); }
  Ticket Send(int to, Tag tag, std::span<const std::byte> bytes) override {
    return root_.Send(members_[to], Scoped(tag), bytes);
  }
  Ticket Receive(int from, Tag tag, std::span<std::byte> bytes) override {
    return root_.Receive(members_[from], Scoped(tag), bytes);
  }
  void Abort(std::string_view reason) noexcept override { root_.Abort(reason); }
  Volume volume() const override { return root_.volume(); }
  double silent_s(int peer) const override { return root_.silent_s(members_[peer]); }
  SharedMemory* shared_memory() override { return root_.shared_memory() ? this : nullptr; }

 protected:
  Group& root() override { return root_; }
  int root_rank(int member) const override { return members_[member]; }

 private:
  std::span<float> Allocate(size_t floats) override {
    return root_.shared_memory()->Allocate(floats);
  }
  void Await(int whom, FunctionRef<bool()> done) override {
    root_.shared_memory()->Await(members_[whom], done);
  }
  bool SumInOrder(std::span<const std::span<float>> parts, std::span<float> into) override;

  Tag Scoped(Tag tag) const {
    TRIREME_ASSERT(tag >= 0 && tag < kTags);
    return scope_ * kTags + tag;
  }

  Group& root_;
  const std::vector<int> members_;  // their ranks in the root
  const int rank_, scope_;
};

struct Choice {
  int colour, key, scopes;
};

// Each member's word to every other: size - 1 small messages per rank, all at once.
template <class Word>
std::vector<Word> Tell(Group& group, const Word& mine) {
  std::vector<Word> all(size_t(group.size()));
  all[size_t(group.rank())] = mine;
  std::vector<Ticket> tickets;
  for (int r = 0; r < group.size(); ++r) {
    if (r == group.rank()) continue;
    tickets.push_back(
        group.Receive(r, kSplitTag, std::as_writable_bytes(std::span<Word>(&all[size_t(r)], 1))));
    tickets.push_back(group.Send(r, kSplitTag, std::as_bytes(std::span<const Word>(&mine, 1))));
  }
  for (Ticket& ticket : tickets) ticket.Wait();
  return all;
}

// What a member brings to a sum, at addresses that are the same for all.
struct Summands {
  size_t count = 0, length = 0;
  const float* parts[SharedMemory::kMostParts] = {};
  float* into = nullptr;
};

// The meeting place of a memory is for all of its ranks, so those of a part meet by messages; then
// each adds its stretch of all parts and writes it to all.
bool Part::SumInOrder(std::span<const std::span<float>> parts, std::span<float> into) {
  Summands mine{.count = parts.size(), .length = into.size(), .into = into.data()};
  TRIREME_ASSERT(parts.size() <= kMostParts);
  for (size_t i = 0; i < parts.size(); ++i) mine.parts[i] = parts[i].data();
  const std::vector<Summands> all = Tell(*this, mine);
  const size_t n = into.size(), ranks = members_.size();
  const size_t begin = n * size_t(rank_) / ranks, end = n * size_t(rank_ + 1) / ranks;
  std::vector<float> sum(end - begin);
  bool begun = false;
  for (const Summands& one : all) {
    TRIREME_ASSERT(one.length == n);
    for (size_t p = 0; p < one.count; ++p) {
      const float* part = one.parts[p] + begin;
      for (size_t i = 0; i < sum.size(); ++i) sum[i] = begun ? sum[i] + part[i] : part[i];
      begun = true;
    }
  }
  for (const Summands& one : all) std::copy(sum.begin(), sum.end(), one.into + begin);
  const int finite = std::isfinite(loops::Largest(sum.data(), sum.size()));
  const std::vector<int> stretches = Tell(*this, finite);  // nobody goes on before all have written
  return std::all_of(stretches.begin(), stretches.end(), [](int good) { return good != 0; });
}

}  // namespace

std::string LostText(int rank, int size, int lost, std::string_view reason) {
  return fmt::format("rank {} of {}: rank {} is lost: {}", rank, size, lost, reason);
}

bool Group::NativeSum(std::span<float>) { return false; }

std::unique_ptr<Group> Group::Split(int colour, int key) {
  Group& base = root();
  const std::vector<Choice> all = Tell(*this, Choice{colour, key, base.scopes_});
  // The largest number any member has seen: two groups that share a rank never share a number.
  int scope = 0;
  for (const Choice& choice : all) scope = std::max(scope, choice.scopes);
  base.scopes_ = scope + 1;

  std::vector<int> members;
  for (int r = 0; r < size(); ++r) {
    if (all[r].colour == colour) members.push_back(r);
  }
  std::stable_sort(members.begin(), members.end(),
                   [&](int a, int b) { return all[a].key < all[b].key; });
  const int own = int(std::find(members.begin(), members.end(), rank()) - members.begin());
  for (int& member : members) member = root_rank(member);
  return std::make_unique<Part>(base, std::move(members), own, scope);
}

}  // namespace trireme
