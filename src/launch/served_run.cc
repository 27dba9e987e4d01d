#include "launch/served_run.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/machine.h"
#include "launch/loopback.h"
#include "launch/server_run.h"
#include "transport/address.h"

namespace trireme {
namespace {

// Where the user wants to be found.
TcpSetup ListeningAt(const std::string& where, TcpSetup setup) {
  const auto address = ParseAddress(where);
  if (!address || !address->port) {
    throw UsageError("transport.listen = \"{}\" is not ADDRESS:PORT", where);
  }
  setup.bind = address->host;
  const bool anywhere = setup.bind == "0.0.0.0" || setup.bind == "::";
  setup.meet = anywhere ? FormatAddress("127.0.0.1", *address->port) : where;
  return setup;
}

// The same port, by the name that others know.
std::string NameOfThis(const std::string& meet) {
  const std::string name = HostName();
  return FormatAddress(name.empty() ? "HOST" : name, *ParseAddress(meet)->port);
}

bool IsLocal(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

}  // namespace

int RunServers(const LocalRanks& ranks, const ServerNeeds& needs, FunctionRef<int(World&)> fn) {
  const std::string& listen = ranks.options.listen;
  LoopbackPlace place;
  const TcpSetup tcp = !listen.empty()          ? ListeningAt(listen, ranks.tcp)
                       : ranks.tcp.meet.empty() ? place.In(ranks.tcp)
                                                : ranks.tcp;
  const bool anywhere = !listen.empty() && listen != tcp.meet;
  const std::string join = anywhere && !tcp.secret.empty() ? NameOfThis(tcp.meet) : tcp.meet;
  const auto announce = [&] {
    if (!needs.announce || !needs.log) return;
    needs.log->Info("server", "listening at {}{}", anywhere ? listen : tcp.meet,
                    needs.servers == 1 ? "; add clients with: trireme join " + join : "");
    if (tcp.secret.empty() && !IsLocal(tcp.bind)) {
      needs.log->Warn("server",
                      "there is no secret, so only clients of this machine can join; set "
                      "transport.secret_file or TRIREME_SECRET");
    }
  };
  return RunServerRanks({.setup = {.tcp = tcp,
                                   .fingerprint = needs.fingerprint,
                                   .judge = needs.judge,
                                   .run_info = needs.run_info,
                                   .refused = needs.refused},
                         .local = ranks.count,
                         .servers = needs.servers,
                         .groups = needs.groups,
                         .group_bytes = needs.group_bytes,
                         .signal = needs.signal,
                         .log = needs.log,
                         .listens = announce},
                        fn);
}

}  // namespace trireme
