#pragma once
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/function_ref.h"

namespace trireme {

// The words of the Error that it throws; none: it throws none.
inline std::string WhatOf(FunctionRef<void()> fn) {
  try {
    fn();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

inline bool Has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace trireme
