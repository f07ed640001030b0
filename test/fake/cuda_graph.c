/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as data: nodes, edges, copies, order; and the objects that a graph keeps alive. */
#include "test/fake/cuda_graph.h"

#include <stdlib.h>
#include <string.h>

bool edge_is_plain(const CUgraphEdgeData *edge)
{
    return edge->from_port == 0 && edge->to_port == 0 && edge->type == 0;
}

/* ---- user objects ---- */

void user_object_unref(CUuserObject object, unsigned count)
{
    if (atomic_fetch_sub(&object->refs, (int)count) == (int)count) {
        sim_later(object->destroy, object->ptr);
        free(object);
    }
}

CUresult cuUserObjectCreate(CUuserObject *out, void *ptr, CUhostFn destroy, unsigned int count,
                            unsigned int flags)
{
    ENTER(cuUserObjectCreate);
    if (out == NULL || destroy == NULL || count == 0 || count > INT32_MAX ||
        flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUuserObject object = sim_alloc(sizeof *object);
    atomic_init(&object->refs, (int)count);
    object->destroy = destroy;
    object->ptr = ptr;
    *out = object;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    ENTER(cuUserObjectRetain);
    if (object == NULL || count == 0 || count > INT32_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    atomic_fetch_add(&object->refs, (int)count);
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    ENTER(cuUserObjectRelease);
    if (object == NULL || count == 0 || count > INT32_MAX) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    user_object_unref(object, count);
    return CUDA_SUCCESS;
}

static void keep_object(CUgraph graph, CUuserObject object, unsigned count)
{
    graph->objects = sim_grow(graph->objects, graph->nobjects + count, sizeof *graph->objects);
    for (unsigned i = 0; i < count; i++) {
        graph->objects[graph->nobjects++] = object;
    }
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                 unsigned int flags)
{
    ENTER(cuGraphRetainUserObject);
    if (object == NULL || count == 0 || count > INT32_MAX ||
        (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    bool known = handle_is(graph, KIND_GRAPH);
    if (known) {
        if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) {
            atomic_fetch_add(&object->refs, (int)count);
        }
        keep_object(graph, object, count);
    }
    sim_unlock();
    return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    ENTER(cuGraphReleaseUserObject);
    unsigned released = 0;
    if (object == NULL || count == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    for (size_t i = handle_is(graph, KIND_GRAPH) ? graph->nobjects : 0; i-- > 0;) {
        if (graph->objects[i] == object && released < count) {
            graph->objects[i] = graph->objects[--graph->nobjects];
            user_object_unref(object, 1);
            released++;
        }
    }
    sim_unlock();
    return released == count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- making and ending ---- */

CUgraph graph_new(bool hidden)
{
    CUgraph graph = sim_alloc(sizeof *graph);
    graph->hidden = hidden;
    if (!hidden) {
        handle_add(graph, KIND_GRAPH);
    }
    return graph;
}

static void condition_unref(struct condition *condition)
{
    if (condition != NULL && atomic_fetch_sub(&condition->refs, 1) == 1) {
        free(condition);
    }
}

void graph_free_node(CUgraphNode node)
{
    if (!node->graph->hidden) {
        handle_drop(node);
    }
    if (node->work != NULL) {
        work_unref(node->work);
    }
    if (node->child != NULL) {
        graph_free(node->child);
    }
    for (size_t i = 0; i < node->nbodies; i++) {
        graph_free(node->bodies[i]);
    }
    condition_unref(node->condition);
    free(node->bodies);
    free(node->deps);
    free(node->edges);
    free(node);
}

void graph_free(CUgraph graph)
{
    for (size_t i = 0; i < graph->n; i++) {
        graph_free_node(graph->nodes[i]);
    }
    for (size_t i = 0; i < graph->nobjects; i++) {
        user_object_unref(graph->objects[i], 1);
    }
    for (size_t i = 0; i < graph->nconditions; i++) {
        condition_unref(graph->conditions[i]);
    }
    if (!graph->hidden) {
        handle_drop(graph);
    }
    free(graph->nodes);
    free(graph->objects);
    free(graph->conditions);
    free(graph);
}

static CUgraphNode append(CUgraph graph, CUgraphNodeType type, struct work *work)
{
    static atomic_uint_fast64_t ids;
    CUgraphNode node = sim_alloc(sizeof *node);
    node->id = atomic_fetch_add(&ids, 1) + 1;
    node->type = type;
    node->graph = graph;
    node->work = work;
    node->index = graph->n;
    if (graph->n == graph->room) {
        graph->room = graph->room == 0 ? 16 : 2 * graph->room;
        graph->nodes = sim_grow(graph->nodes, graph->room, sizeof *graph->nodes);
    }
    graph->nodes[graph->n++] = node;
    if (!graph->hidden) {
        handle_add(node, KIND_NODE);
    }
    return node;
}

static void set_deps(CUgraphNode node, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                     size_t n)
{
    node->deps = sim_grow(node->deps, n + 1, sizeof *node->deps);
    node->edges = sim_grow(node->edges, n + 1, sizeof *node->edges);
    memset(node->edges, 0, n * sizeof *node->edges);
    for (size_t i = 0; i < n; i++) {
        node->deps[i] = deps[i];
        if (edges != NULL) {
            node->edges[i] = edges[i];
        }
    }
    node->ndeps = n;
}

CUresult graph_add(CUgraph graph, const CUgraphNode *deps, const CUgraphEdgeData *edges,
                   size_t ndeps, CUgraphNodeType type, struct work *work, CUgraphNode *out)
{
    for (size_t i = 0; i < ndeps; i++) {
        bool repeated = false;
        for (size_t j = 0; j < i; j++) {
            repeated = repeated || deps[j] == deps[i];
        }
        if (deps == NULL || !handle_is(deps[i], KIND_NODE) || deps[i]->graph != graph || repeated) {
            if (work != NULL) {
                work_unref(work);
            }
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    *out = append(graph, type, work);
    set_deps(*out, deps, edges, ndeps);
    return CUDA_SUCCESS;
}

/* ---- copies ---- */

CUgraph graph_clone(CUgraph graph, bool hidden)
{
    CUgraph copy = graph_new(hidden);
    for (size_t i = 0; i < graph->n; i++) {
        CUgraphNode from = graph->nodes[i];
        CUgraphNode node = append(copy, from->type, from->work ? work_ref(from->work) : NULL);
        node->origin = from->id;
        if (from->child != NULL) {
            node->child = graph_clone(from->child, hidden);
            node->child->owned = true;
        }
        node->nbodies = from->nbodies;
        node->bodies = sim_alloc((from->nbodies + 1) * sizeof(CUgraph));
        for (size_t k = 0; k < from->nbodies; k++) {
            node->bodies[k] = graph_clone(from->bodies[k], hidden);
            node->bodies[k]->owned = true;
        }
        node->condition_type = from->condition_type;
        node->condition = from->condition;
        if (node->condition != NULL) {
            atomic_fetch_add(&node->condition->refs, 1);
        }
    }
    for (size_t i = 0; i < graph->n; i++) {
        CUgraphNode from = graph->nodes[i], node = copy->nodes[i];
        set_deps(node, from->deps, from->edges, from->ndeps);
        for (size_t k = 0; k < node->ndeps; k++) {
            node->deps[k] = copy->nodes[from->deps[k]->index];
        }
    }
    for (size_t i = 0; i < graph->nobjects; i++) {
        atomic_fetch_add(&graph->objects[i]->refs, 1);
        keep_object(copy, graph->objects[i], 1);
    }
    return copy;
}

/* ---- order ---- */

bool graph_order(CUgraph graph, CUgraphNode *order)
{
    size_t done = 0;
    for (size_t i = 0; i < graph->n; i++) {
        graph->nodes[i]->mark = 0;
    }
    while (done < graph->n) {
        size_t before = done;
        for (size_t i = 0; i < graph->n; i++) {
            CUgraphNode node = graph->nodes[i];
            bool ready = node->mark == 0;
            for (size_t k = 0; ready && k < node->ndeps; k++) {
                ready = node->deps[k]->mark != 0;
            }
            if (ready) {
                node->mark = 1;
                order[done++] = node;
            }
        }
        if (done == before) {
            return false;
        }
    }
    return true;
}

bool graph_reaches(CUgraph graph, const CUgraphNode *from, size_t nfrom, const CUgraphNode *wanted,
                   size_t nwanted)
{
    CUgraphNode *stack = sim_alloc((graph->n + nfrom + 1) * sizeof *stack);
    size_t depth = 0;
    bool all = true;
    for (size_t i = 0; i < graph->n; i++) {
        graph->nodes[i]->mark = 0;
    }
    for (size_t i = 0; i < nfrom; i++) {
        if (from[i]->mark == 0) {
            from[i]->mark = 1;
            stack[depth++] = from[i];
        }
    }
    while (depth > 0) {
        CUgraphNode node = stack[--depth];
        for (size_t k = 0; k < node->ndeps; k++) {
            if (node->deps[k]->mark == 0) {
                node->deps[k]->mark = 1;
                stack[depth++] = node->deps[k];
            }
        }
    }
    for (size_t i = 0; i < nwanted; i++) {
        all = all && wanted[i]->mark != 0;
    }
    free(stack);
    return all;
}
