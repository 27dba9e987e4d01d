#pragma once
#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "transport/memory/bulk.h"

namespace trireme {

// A bare pair of libfabric ends in two processes, for `bench memory`: fi_write and fi_read of
// memory that nobody else knows of. They find each other in memory that both have mapped, zeroed.
struct BareFabricPlace {
  struct Address {
    std::atomic<int> is_there;
    size_t count;
    char bytes[512];
  } box, client;
  BulkPlace written, read;
};

class BareFabricBox {
 public:
  BareFabricBox(BareFabricPlace& place, const std::string& provider, size_t bytes);
  ~BareFabricBox();

 private:
  std::vector<std::byte> bytes_;
  std::unique_ptr<BulkEnd> end_;
  std::unique_ptr<BulkEnd::Shared> written_, read_;
  std::jthread thread_;
};

class BareFabricClient {
 public:
  BareFabricClient(BareFabricPlace& place, const std::string& provider);
  void Write(std::span<const std::byte> bytes);
  void Read(std::span<std::byte> bytes);

 private:
  const BareFabricPlace& place_;
  std::unique_ptr<BulkEnd> end_;
};

}  // namespace trireme
