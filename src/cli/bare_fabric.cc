#include "cli/bare_fabric.h"

#include <algorithm>
#include <chrono>

#include "base/start_thread.h"
#include "transport/deadline.h"
#include "transport/fabric/end.h"

namespace trireme {
namespace {

constexpr double kPatience_s = 120;
constexpr char kHost[] = "127.0.0.1";

void Tell(BareFabricPlace::Address& place, const std::string& address) {
  if (address.size() > sizeof(place.bytes)) throw Error("an end's address is too long");
  std::copy(address.begin(), address.end(), place.bytes);
  place.count = address.size();
  place.is_there.store(1);
}

std::string Hear(const BareFabricPlace::Address& place) {
  const Deadline limit = After(kPatience_s);
  while (place.is_there.load() == 0) {
    if (After(0) >= limit) throw Error("the other end of the bare loop did not come");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {place.bytes, place.count};
}

constexpr auto kGoOn = [] { return true; };

}  // namespace

BareFabricBox::BareFabricBox(BareFabricPlace& place, const std::string& provider, size_t bytes)
    : bytes_(bytes), end_(OpenFabricEnd(provider, kHost)) {
  written_ = end_->Share(bytes_, true);
  read_ = end_->Share(bytes_, false);
  place.written = written_->place();
  place.read = read_->place();
  Tell(place.box, end_->address());
  thread_ = StartThread("the thread of a bare end", [this, &place](const std::stop_token& stop) {
    end_->Reach(Hear(place.client));
    while (!stop.stop_requested()) end_->Serve(0.05);
  });
}

BareFabricBox::~BareFabricBox() {
  thread_.request_stop();
  thread_.join();
}

BareFabricClient::BareFabricClient(BareFabricPlace& place, const std::string& provider)
    : place_(place), end_(OpenFabricEnd(provider, kHost)) {
  end_->Reach(Hear(place.box));
  Tell(place.client, end_->address());
}

void BareFabricClient::Write(std::span<const std::byte> bytes) {
  end_->Write(bytes, place_.written, {kGoOn, kPatience_s});
}

void BareFabricClient::Read(std::span<std::byte> bytes) {
  end_->Read(bytes, place_.read, {kGoOn, kPatience_s});
}

}  // namespace trireme
