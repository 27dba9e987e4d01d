#pragma once

namespace trireme {

// Built-in models as text: the layers, names and order of graph/models/cnn.cc and resnet.cc.
inline constexpr char kCnnAsText[] = R"(
define stage width {
  conv: conv2d width kernel=3 padding=1 bias=no
  norm: batch_norm
  activation: relu
}
features.0: stage 32
pool: max_pool 2
features.1: stage 64
pool: max_pool 2
features.2: stage 64
flatten: flatten
classifier.0: dense 128
classifier.1: relu
classifier.2: dense classes
)";

inline constexpr char kResNet18AsText[] = R"(
define block width stride=1 {
  residual {
    conv1: conv2d width kernel=3 stride=stride padding=1 bias=no
    bn1:   batch_norm
    relu1: relu
    conv2: conv2d width kernel=3 padding=1 bias=no
    bn2:   batch_norm
  } projection {
    downsample.0: conv2d width kernel=1 stride=stride bias=no
    downsample.1: batch_norm
  }
  relu: relu
}
conv1:   conv2d 64 kernel=3 padding=1 bias=no
bn1:     batch_norm
relu:    relu
layer1:  repeat 2 { block 64 }
layer2:  { block 128 stride=2; block 128 }
layer3:  { block 256 stride=2; block 256 }
layer4:  { block 512 stride=2; block 512 }
avgpool: global_average_pool
fc:      dense classes
)";

}  // namespace trireme
