#include "engine/cuda/memset_nodes.h"

#include <vector>

#include "engine/cuda/check.h"
#include "engine/cuda/fill.h"

namespace trireme::cuda {
namespace {

constexpr size_t kMostBytes = 4096;

// From version 13 on these take what else there is to say of an edge, which is nothing.
#if CUDART_VERSION >= 13000
#define TRIREME_NO_EDGE_DATA nullptr,
#else
#define TRIREME_NO_EDGE_DATA
#endif

// Empty: there are none, or edges that are more than an order.
template <class Get>
bool NodesBy(const Get& get, std::vector<cudaGraphNode_t>& nodes) {
  size_t size = 0;
  if (get(nullptr, &size) != cudaSuccess) return false;
  nodes.resize(size);
  return size == 0 || get(nodes.data(), &size) == cudaSuccess;
}

void Replace(cudaGraph_t graph, cudaGraphNode_t node) {
  cudaMemsetParams params = {};
  Check(cudaGraphMemsetNodeGetParams(node, &params), "cudaGraphMemsetNodeGetParams");
  if (params.height != 1 || params.width * params.elementSize > kMostBytes) return;
  std::vector<cudaGraphNode_t> before, after;
  const bool known =
      NodesBy(
          [&](cudaGraphNode_t* nodes, size_t* size) {
            return cudaGraphNodeGetDependencies(node, nodes, TRIREME_NO_EDGE_DATA size);
          },
          before) &&
      NodesBy(
          [&](cudaGraphNode_t* nodes, size_t* size) {
            return cudaGraphNodeGetDependentNodes(node, nodes, TRIREME_NO_EDGE_DATA size);
          },
          after);
  if (!known) {
    cudaGetLastError();
    return;
  }
  auto* to = static_cast<unsigned char*>(params.dst);
  unsigned bytes = unsigned(params.width * params.elementSize);
  void* arguments[] = {&to, &params.value, &params.elementSize, &bytes};
  const cudaKernelNodeParams kernel = FillNode(arguments);
  cudaGraphNode_t made = nullptr;
  Check(cudaGraphAddKernelNode(&made, graph, before.data(), before.size(), &kernel),
        "cudaGraphAddKernelNode");
  const std::vector<cudaGraphNode_t> from(after.size(), made);
  Check(
      cudaGraphAddDependencies(graph, from.data(), after.data(), TRIREME_NO_EDGE_DATA after.size()),
      "cudaGraphAddDependencies");
  Check(cudaGraphDestroyNode(node), "cudaGraphDestroyNode");
}

}  // namespace

void ReplaceMemsetNodes(cudaGraph_t graph) {
  std::vector<cudaGraphNode_t> nodes;
  size_t size = 0;
  Check(cudaGraphGetNodes(graph, nullptr, &size), "cudaGraphGetNodes");
  nodes.resize(size);
  if (size > 0) Check(cudaGraphGetNodes(graph, nodes.data(), &size), "cudaGraphGetNodes");
  for (const cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type = {};
    Check(cudaGraphNodeGetType(node, &type), "cudaGraphNodeGetType");
    if (type == cudaGraphNodeTypeMemset) Replace(graph, node);
  }
}

}  // namespace trireme::cuda
