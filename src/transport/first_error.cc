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
  if (error_ && (echo || !echo_)) return;
  error_ = std::move(error);
  echo_ = echo;
  rank_ = rank;
}

void FirstError::Rethrow(int ranks) {
  std::lock_guard lock(mutex_);
  if (!error_) return;
  try {
    std::rethrow_exception(error_);
  } catch (Error& error) {
    error.Add("rank {} of {}", rank_, ranks);
    throw;
  } catch (const std::exception& error) {
    throw Error("{} (rank {} of {})", error.what(), rank_, ranks);
  }
}

}  // namespace trireme
