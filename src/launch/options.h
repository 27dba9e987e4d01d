#pragma once
#include <string>

#include "base/options.h"

namespace trireme {

constexpr char kAutoTransport[] = "auto";  // the launcher chooses

// Section [transport] of a recipe.
struct TransportOptions {
  std::string name = kAutoTransport;
  int ranks = 1;
  double join_s = 60;
  double timeout_s = 360;           // longer than trainer.stall_seconds, which says more
  std::string meet;                 // tcp: HOST:PORT of rank 0
  std::string hosts;                // tcp: a file
  std::string bind;                 // tcp
  std::string listen;               // tcp and shm, with a server
  std::string memory;               // strategy.centre = "memory": HOST:PORT,...
  std::string memory_way = "auto";  // to boxes that transport.memory names
  std::string secret_file;          // tcp
  double throttle = 0;              // tcp: bytes per second
  double latency_ms = 0;            // tcp
  std::string plugin;               // mpi
  std::string mpi_library;          // mpi
};

void Describe(OptionTable<TransportOptions>& t);

}  // namespace trireme
