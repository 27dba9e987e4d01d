#pragma once
#include <string>

#include "graph/models/models.h"

namespace trireme {

// Vision transformers (Dosovitskiy et al. 2020; the small ones as Touvron et al. 2020): patches of
// 16 px become tokens, of 4 px in images of up to 64 px; torchvision's parameter names.
Graph BuildVitTi(const ModelOptions& options, const std::string& sizes, Shape input, int classes);
Graph BuildVitS(const ModelOptions& options, const std::string& sizes, Shape input, int classes);
Graph BuildVitB(const ModelOptions& options, const std::string& sizes, Shape input, int classes);

}  // namespace trireme
