#pragma once

namespace trireme {

// Built-in models as text: the layers, names and order of graph/models/cnn.cc, resnet.cc, vit.cc.
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

// All that transformers are made of, for images of 4 px and more.
inline constexpr char kSmallTransformer[] = R"(
define layer width heads {
  residual {
    layer_norm tokens=yes
    dense 3*width tokens=yes
    attention heads
    dense width bias=no tokens=yes
    stochastic_depth 0.3
  }
  residual {
    layer_norm affine=no tokens=yes
    dense 2*width tokens=yes
    gelu
    dense width tokens=yes
  }
}
patches:   conv2d 12 kernel=2 stride=2
token:     class_token
positions: position_embedding
layers:    { layer 12 2; layer 12 3 }
residual   { first_token; dense 12 } shortcut { global_average_pool }
layer_norm
head:      dense classes
)";

inline constexpr char kVitTiAsText[] = R"(
define layer width heads {
  residual {
    ln_1:                    layer_norm epsilon=1e-6 tokens=yes
    self_attention.in_proj_: dense 3*width tokens=yes
    self_attention:          attention heads
    self_attention.out_proj: dense width tokens=yes
  }
  residual {
    ln_2:  layer_norm epsilon=1e-6 tokens=yes
    mlp.0: dense 4*width tokens=yes
    mlp.1: gelu
    mlp.3: dense width tokens=yes
  }
}
conv_proj: conv2d 192 kernel=4 stride=4
class_token: class_token
encoder.pos_embedding: position_embedding
encoder.layers: {
  encoder_layer_0:  layer 192 3
  encoder_layer_1:  layer 192 3
  encoder_layer_2:  layer 192 3
  encoder_layer_3:  layer 192 3
  encoder_layer_4:  layer 192 3
  encoder_layer_5:  layer 192 3
  encoder_layer_6:  layer 192 3
  encoder_layer_7:  layer 192 3
  encoder_layer_8:  layer 192 3
  encoder_layer_9:  layer 192 3
  encoder_layer_10: layer 192 3
  encoder_layer_11: layer 192 3
}
encoder.ln: layer_norm epsilon=1e-6 tokens=yes
first_token: first_token
heads.head: dense classes
)";

}  // namespace trireme
