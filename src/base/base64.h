#pragma once
#include <string>
#include <string_view>

namespace trireme {

// As in data: addresses (RFC 4648, padded).
std::string Base64(std::string_view bytes);
bool IsBase64(std::string_view text);

}  // namespace trireme
