#pragma once
#include <string_view>

namespace trireme {

// How every page looks and what it does under the mouse: constant text, no part of it from outside.
std::string_view PageStyle();
std::string_view PageScript();
std::string_view LiveScript();    // a page that asks /data for newer content
std::string_view PageIcon();      // the address of the picture on the browser's tab
std::string_view PagePatterns();  // of the parts of bars, for those who see no colours

}  // namespace trireme
