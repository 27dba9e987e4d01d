#pragma once

// Behind the parameters of a kernel's lambda, instead of HWY_ATTR: it is compiled for the
// instruction set of its function and becomes part of it. Left to themselves, compilers call a long
// lambda (clang everywhere, g++ on arm64), and then a tile of sums lies in memory instead of in
// registers: half the speed. A lambda handed to a team is called from code without an instruction
// set: HWY_ATTR.
#define TRIREME_INLINED HWY_ATTR __attribute__((always_inline))
