#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/engine.h"

// A 1x1 convolution y = x W with batch-norm behind it needs y nowhere: mean and variance of y
// follow from those of x, which has fewer channels (its sums and its Gram matrix x^T x), and so do
// the gradients.

namespace trireme::cuda {

// Chains that compute so: conv2d_batch_norm where IsWorthGram, and what it is part of. They come
// before those that would take a part of them.
std::vector<Fusion> GramFusions();

// Is a chain of conv2d and batch_norm worth it? It is if the convolution is a product without a
// bias that makes at least twice as many channels, of so many rows that passes over y cost more
// than the small kernels that take their place.
bool IsWorthGram(const Graph& graph, std::span<const Node* const> chain, int capacity);

// Those operations.
bool IsGramOp(std::string_view op);

// What backward needs of x beside x itself, forward has found: it becomes one more output of the
// one and the last input of the other. Where a batch_norm_relu makes x, it gives the sums of x as
// well, which is cheaper than to read x again: its fourth output and forward's last input. Says how
// many there are; empty: none.
std::string KeepMoments(Graph& graph);

// Numbers of such a value: the products of x, centred, with y [in][out], then the sums of x [in].
constexpr size_t MomentsSize(int in, int out) { return size_t(in) * size_t(out) + size_t(in); }

}  // namespace trireme::cuda
