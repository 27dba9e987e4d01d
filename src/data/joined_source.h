#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "data/source.h"

namespace trireme {

// Pictures of several sources, one of each, as one list: what their threads share.
class JoinedSource : public Source {
 public:
  explicit JoinedSource(std::vector<std::unique_ptr<Source>> parts)
      : Source(parts.front()->shape(), static_cast<int64_t>(parts.size())),
        parts_(std::move(parts)) {
    for (const auto& part : parts_) {
      TRIREME_ASSERT(part->cuts() && part->size() == 1 && part->shape() == shape());
      TRIREME_ASSERT(part->has_bytes() == has_bytes());
    }
  }

  int32_t label(int64_t index) const override { return parts_[index]->label(0); }
  void Read(int64_t index, std::span<float> out) const override { parts_[index]->Read(0, out); }
  bool cuts() const override { return true; }
  void GatherFramed(std::span<const int64_t> indices, std::span<const Framing> framings,
                    const Normalizer& normalizer, float* out, int32_t* labels,
                    FetchTimes* times) const override {
    constexpr int64_t kOnly = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      parts_[indices[i]]->GatherFramed({&kOnly, 1}, framings.subspan(i, 1), normalizer,
                                       out + i * shape().size(), labels + i, times);
    }
  }

  bool has_bytes() const override { return parts_.front()->has_bytes(); }
  void GatherBytes(std::span<const int64_t> indices, std::span<const Framing> framings,
                   uint8_t* out, int32_t* labels, FetchTimes* times) const override {
    constexpr int64_t kOnly = 0;
    for (size_t i = 0; i < indices.size(); ++i) {
      parts_[indices[i]]->GatherBytes({&kOnly, 1}, framings.subspan(i, 1), out + i * shape().size(),
                                      labels + i, times);
    }
  }

 private:
  const std::vector<std::unique_ptr<Source>> parts_;
};

}  // namespace trireme
