#include "transport/first_error.h"

#include "base/error.h"

namespace trireme {
namespace {

bool IsEcho(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const PeerLost&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void FirstError::Keep(int rank, std::exception_ptr error) noexcept {
  const bool echo = IsEcho(error);
  std::lock_guard lock(mutex_);
  Kept& kept = echo ? echo_ : real_;
  if (!kept.error) kept = {std::move(error), rank};
}

void FirstError::Rethrow(int ranks) {
  std::lock_guard lock(mutex_);
  const Kept& kept = real_.error ? real_ : echo_;
  if (!kept.error) return;
  try {
    std::rethrow_exception(kept.error);
  } catch (Error& error) {
    error.Add("rank {} of {}", kept.rank, ranks);
    throw;
  } catch (const std::exception& error) {
    throw Error("{} (rank {} of {})", error.what(), kept.rank, ranks);
  }
}

}  // namespace trireme
