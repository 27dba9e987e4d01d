#pragma once
#include "graph/models/models.h"

namespace trireme {

// Residual networks with exactly torchvision's layers and parameter names (version 1.5: in a
// bottleneck the 3x3 convolution has the stride). For images of at most 64 px the stem is a 3x3
// convolution without pooling.
Graph BuildResNet18(const ModelOptions& options, const std::string& sizes, Shape input,
                    int classes);
Graph BuildResNet34(const ModelOptions& options, const std::string& sizes, Shape input,
                    int classes);
Graph BuildResNet50(const ModelOptions& options, const std::string& sizes, Shape input,
                    int classes);
Graph BuildResNet101(const ModelOptions& options, const std::string& sizes, Shape input,
                     int classes);
Graph BuildResNet152(const ModelOptions& options, const std::string& sizes, Shape input,
                     int classes);

}  // namespace trireme
