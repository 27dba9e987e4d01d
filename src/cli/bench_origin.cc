#include "cli/bench_origin.h"

#include <cmath>
#include <cstdlib>

#include "base/cores.h"
#include "base/machine.h"
#include "base/version.h"

namespace trireme {

Json WithOrigin(Json result) {
  const Machine machine = ReadMachine();
  double load = 0;
  const bool known = getloadavg(&load, 1) == 1;
  result.Add("machine", machine.cpu_model.empty() ? machine.architecture : machine.cpu_model);
  result.Add("cores", UsableCores(ReadCoreFacts()).count)
      .Add("version", Version())
      .Add("commit", Commit());
  result.Add("load", known ? Json(std::round(load * 10) / 10) : Json());
  return result;
}

}  // namespace trireme
