/* SPDX-License-Identifier: Apache-2.0 */
/* Creating, copying and looking into graphs. */
#include "test/fake/cuda_graph.h"

#include <stdlib.h>
#include <string.h>

#define NEED_GRAPH(graph)                \
    if (!handle_is(graph, KIND_GRAPH)) { \
        return CUDA_ERROR_INVALID_VALUE; \
    }
#define NEED_NODE(node)                  \
    if (!handle_is(node, KIND_NODE)) {   \
        return CUDA_ERROR_INVALID_VALUE; \
    }

/* A function of the API around one that runs in sim_lock. */
#define LOCKED(symbol, parameters, ...)             \
    CUresult symbol parameters                      \
    {                                               \
        ENTER(symbol);                              \
        sim_lock();                                 \
        CUresult result = in_##symbol(__VA_ARGS__); \
        sim_unlock();                               \
        return result;                              \
    }

static CUresult in_cuGraphCreate(CUgraph *out, unsigned flags)
{
    if (out == NULL || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = graph_new(false);
    return CUDA_SUCCESS;
}
LOCKED(cuGraphCreate, (CUgraph * out, unsigned int flags), out, flags)

static CUresult in_cuGraphDestroy(CUgraph graph)
{
    NEED_GRAPH(graph);
    if (graph->owned || graph->capture != NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    graph_free(graph);
    return CUDA_SUCCESS;
}
LOCKED(cuGraphDestroy, (CUgraph graph), graph)

static CUresult in_cuGraphClone(CUgraph *out, CUgraph graph)
{
    NEED_GRAPH(graph);
    if (out == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = graph_clone(graph, false);
    return CUDA_SUCCESS;
}
LOCKED(cuGraphClone, (CUgraph * out, CUgraph graph), out, graph)

static CUresult in_cuGraphDestroyNode(CUgraphNode node)
{
    NEED_NODE(node);
    CUgraph graph = node->graph;
    for (size_t i = 0; i < graph->n; i++) {
        CUgraphNode other = graph->nodes[i];
        for (size_t k = other->ndeps; k-- > 0;) {
            if (other->deps[k] == node) {
                other->ndeps--;
                memmove(&other->deps[k], &other->deps[k + 1],
                        (other->ndeps - k) * sizeof other->deps[0]);
                memmove(&other->edges[k], &other->edges[k + 1],
                        (other->ndeps - k) * sizeof other->edges[0]);
            }
        }
    }
    for (size_t i = node->index; i + 1 < graph->n; i++) {
        graph->nodes[i] = graph->nodes[i + 1];
        graph->nodes[i]->index = i;
    }
    graph->n--;
    graph_free_node(node);
    return CUDA_SUCCESS;
}
LOCKED(cuGraphDestroyNode, (CUgraphNode node), node)

/* ---- lists: *n is the room on entry (of a given array), the number on return ---- */

static CUresult nodes_out(CUgraph graph, CUgraphNode *nodes, size_t *n, bool roots)
{
    size_t found = 0;
    NEED_GRAPH(graph);
    if (n == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < graph->n; i++) {
        if (!roots || graph->nodes[i]->ndeps == 0) {
            if (nodes != NULL && found < *n) {
                nodes[found] = graph->nodes[i];
            }
            found++;
        }
    }
    for (size_t i = found; nodes != NULL && i < *n; i++) {
        nodes[i] = NULL;
    }
    *n = nodes == NULL || found < *n ? found : *n;
    return CUDA_SUCCESS;
}

static CUresult in_cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    return nodes_out(graph, nodes, n, false);
}
LOCKED(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n), graph, nodes, n)

static CUresult in_cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *n)
{
    return nodes_out(graph, nodes, n, true);
}
LOCKED(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *nodes, size_t *n), graph, nodes, n)

struct edges_out {
    CUgraphNode *from, *to;
    CUgraphEdgeData *data;
    size_t room, found;
    bool lossy;
};

/* An edge whose data the caller has no place for makes the answer incomplete. */
static void edge_out(struct edges_out *out, CUgraphNode to, size_t k)
{
    if (out->found < out->room) {
        if (out->from != NULL) {
            out->from[out->found] = to->deps[k];
        }
        if (out->to != NULL) {
            out->to[out->found] = to;
        }
        if (out->data != NULL) {
            out->data[out->found] = to->edges[k];
        }
    }
    out->lossy = out->lossy || (out->data == NULL && !edge_is_plain(&to->edges[k]));
    out->found++;
}

static CUresult finish(struct edges_out *out, bool given, size_t *n)
{
    *n = !given || out->found < out->room ? out->found : out->room;
    return given && out->lossy ? CUDA_ERROR_LOSSY_QUERY : CUDA_SUCCESS;
}

static CUresult in_cuGraphGetEdges_v2(CUgraph graph, CUgraphNode *from, CUgraphNode *to,
                                      CUgraphEdgeData *data, size_t *n)
{
    NEED_GRAPH(graph);
    if (n == NULL || (from == NULL) != (to == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct edges_out out = {from, to, data, from != NULL ? *n : 0, 0, false};
    for (size_t i = 0; i < graph->n; i++) {
        for (size_t k = 0; k < graph->nodes[i]->ndeps; k++) {
            edge_out(&out, graph->nodes[i], k);
        }
    }
    return finish(&out, from != NULL, n);
}
LOCKED(cuGraphGetEdges_v2,
       (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *n), graph,
       from, to, data, n)

static CUresult in_cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n)
{
    return in_cuGraphGetEdges_v2(graph, from, to, NULL, n);
}
LOCKED(cuGraphGetEdges, (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *n), graph, from,
       to, n)

static CUresult in_cuGraphNodeGetDependencies_v2(CUgraphNode node, CUgraphNode *deps,
                                                 CUgraphEdgeData *data, size_t *n)
{
    NEED_NODE(node);
    if (n == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct edges_out out = {deps, NULL, data, deps != NULL ? *n : 0, 0, false};
    for (size_t k = 0; k < node->ndeps; k++) {
        edge_out(&out, node, k);
    }
    return finish(&out, deps != NULL, n);
}
LOCKED(cuGraphNodeGetDependencies_v2,
       (CUgraphNode node, CUgraphNode *deps, CUgraphEdgeData *data, size_t *n), node, deps, data, n)

static CUresult in_cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *deps, size_t *n)
{
    return in_cuGraphNodeGetDependencies_v2(node, deps, NULL, n);
}
LOCKED(cuGraphNodeGetDependencies, (CUgraphNode node, CUgraphNode *deps, size_t *n), node, deps, n)

static CUresult in_cuGraphNodeGetDependentNodes_v2(CUgraphNode node, CUgraphNode *nodes,
                                                   CUgraphEdgeData *data, size_t *n)
{
    NEED_NODE(node);
    if (n == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct edges_out out = {NULL, nodes, data, nodes != NULL ? *n : 0, 0, false};
    for (size_t i = 0; i < node->graph->n; i++) {
        CUgraphNode other = node->graph->nodes[i];
        for (size_t k = 0; k < other->ndeps; k++) {
            if (other->deps[k] == node) {
                edge_out(&out, other, k);
            }
        }
    }
    return finish(&out, nodes != NULL, n);
}
LOCKED(cuGraphNodeGetDependentNodes_v2,
       (CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *n), node, nodes, data,
       n)

static CUresult in_cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *nodes, size_t *n)
{
    return in_cuGraphNodeGetDependentNodes_v2(node, nodes, NULL, n);
}
LOCKED(cuGraphNodeGetDependentNodes, (CUgraphNode node, CUgraphNode *nodes, size_t *n), node, nodes,
       n)

/* ---- one node ---- */

static CUresult in_cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    NEED_NODE(node);
    if (type == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *type = node->type;
    return CUDA_SUCCESS;
}
LOCKED(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type), node, type)

static CUresult in_cuGraphNodeFindInClone(CUgraphNode *out, CUgraphNode node, CUgraph clone)
{
    NEED_NODE(node);
    NEED_GRAPH(clone);
    for (size_t i = 0; out != NULL && i < clone->n; i++) {
        if (clone->nodes[i]->origin == node->id) {
            *out = clone->nodes[i];
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}
LOCKED(cuGraphNodeFindInClone, (CUgraphNode * out, CUgraphNode node, CUgraph clone), out, node,
       clone)

static CUresult in_cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *out)
{
    NEED_NODE(node);
    if (out == NULL || node->child == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = node->child;
    return CUDA_SUCCESS;
}
LOCKED(cuGraphChildGraphNodeGetGraph, (CUgraphNode node, CUgraph *out), node, out)

static CUresult event_of(CUgraphNode node, CUgraphNodeType type, CUevent *out)
{
    NEED_NODE(node);
    if (out == NULL || node->type != type) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = node->work->u.event;
    return CUDA_SUCCESS;
}

static CUresult in_cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *out)
{
    return event_of(node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, out);
}
LOCKED(cuGraphEventRecordNodeGetEvent, (CUgraphNode node, CUevent *out), node, out)

static CUresult in_cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *out)
{
    return event_of(node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, out);
}
LOCKED(cuGraphEventWaitNodeGetEvent, (CUgraphNode node, CUevent *out), node, out)

/* ---- edges ---- */

static CUresult in_cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from,
                                             const CUgraphNode *to, const CUgraphEdgeData *data,
                                             size_t n)
{
    NEED_GRAPH(graph);
    if (n > 0 && (from == NULL || to == NULL)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < n; i++) {
        NEED_NODE(from[i]);
        NEED_NODE(to[i]);
        if (from[i]->graph != graph || to[i]->graph != graph || from[i] == to[i]) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        for (size_t k = 0; k < to[i]->ndeps; k++) {
            if (to[i]->deps[k] == from[i]) {
                return CUDA_ERROR_INVALID_VALUE;
            }
        }
        CUgraphNode node = to[i];
        node->deps = sim_grow(node->deps, node->ndeps + 1, sizeof *node->deps);
        node->edges = sim_grow(node->edges, node->ndeps + 1, sizeof *node->edges);
        node->deps[node->ndeps] = from[i];
        memset(&node->edges[node->ndeps], 0, sizeof *node->edges);
        if (data != NULL) {
            node->edges[node->ndeps] = data[i];
        }
        node->ndeps++;
    }
    return CUDA_SUCCESS;
}
LOCKED(cuGraphAddDependencies_v2,
       (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data,
        size_t n),
       graph, from, to, data, n)

static CUresult in_cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from,
                                          const CUgraphNode *to, size_t n)
{
    return in_cuGraphAddDependencies_v2(graph, from, to, NULL, n);
}
LOCKED(cuGraphAddDependencies,
       (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t n), graph, from, to,
       n)
