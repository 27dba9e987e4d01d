#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "image/decoder.h"

namespace trireme {

std::unique_ptr<Decoder> OpenPng(std::span<const uint8_t> bytes, const std::string& name);

}  // namespace trireme
