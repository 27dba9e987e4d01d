#pragma once
#include <cstdint>

#include "base/team.h"
#include "transport/memory/image.h"

namespace trireme {

// Makes changes in an image, each as one: nobody reads a region meanwhile, and what the process
// could not finish the next one does. A change goes forward only: what it takes (the values in the
// slot, the word, where it has got to) is in the image before it begins.
//
// A put of a whole region hands the slot over and takes the region's place as the next slot: no
// value is copied. An add works in place, in pieces by all threads of the team; the old values of a
// piece are kept aside until it is marked as added.
//
// One thread at a time.
class Changes {
 public:
  // Finishes what another process had begun. `timeout_s`: how long a reader may take.
  Changes(MemoryImage& image, Team& team, double timeout_s);

  // The word is checked and its number the session's next. Throws Error where the values are not
  // finite.
  ChangeResult Make(uint32_t session, const Word& word);

 private:
  void CheckFinite(const SessionRecord& session, const Word& word, std::string_view name);
  void Begin(uint32_t session, const Word& word);
  void Apply();
  void PutBack();
  void Add(const RegionRecord& region, const SessionRecord& session, const Word& word);
  void Commit();
  void AwaitReaders(uint32_t region);

  MemoryImage& image_;
  Team& team_;
  const double timeout_s_;
};

// How long somebody who reads so many bytes of a region may keep others from changing it.
double ReaderPatience(uint64_t bytes);

// Its locks, its slot and its record are free again.
void EndSession(MemoryImage& image, uint32_t session);

}  // namespace trireme
