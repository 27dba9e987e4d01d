#pragma once
#include <memory>
#include <string>

#include "transport/memory.h"
#include "transport/memory/bulk.h"

namespace trireme {

// Which way long values take to a box that may offer more than the connection.
enum class LongValues { kConnection, kBulk, kFastest };

struct TcpMemorySetup {
  std::string meet;    // HOST:PORT of the box
  std::string secret;  // empty: only a box of this host
  double timeout_s = 60;
  LongValues long_values = LongValues::kConnection;
  OpenBulk open_bulk = {};  // for the other two
};

// The way `tcp`, and with `long_values` beside it what the box offers for those (transport/memory/
// bulk.h): the way `fabric`. kBulk: an Error where it offers nothing, or this machine lacks what it
// needs. kFastest: by measurement, once; way() says what was found.
//
// Words and values go over one connection, waits for versions over a second one; a
// connection that breaks is made again, and what was not answered is said again. The calling thread
// moves the bytes: a put or an add returns when its values have been handed to the kernel, a get
// fetches its values when its ticket is waited for. At most kKeptResults changes are on their way.
//
// Throws Error where nobody answers within the timeout, or the box refuses.
std::unique_ptr<Memory> ConnectTcp(const TcpMemorySetup& setup);

std::string FetchMemoryStatus(const TcpMemorySetup& setup);  // see StatusText

}  // namespace trireme
