/* SPDX-License-Identifier: Apache-2.0 */
/* Adding nodes to graphs by hand, and the parameters of kernel nodes. */
#include "test/fake/cuda_graph.h"

#include <stdlib.h>
#include <string.h>

/* Where a new node goes. */
struct place {
    CUgraphNode *out;
    CUgraph graph;
    const CUgraphNode *deps;
    const CUgraphEdgeData *edges;
    size_t n;
};

/* In sim_lock. Eats `work`. */
static CUresult add(const struct place *place, CUgraphNodeType type, struct work *work)
{
    if (place->out == NULL || !handle_is(place->graph, KIND_GRAPH)) {
        if (work != NULL) {
            work_unref(work);
        }
        return CUDA_ERROR_INVALID_VALUE;
    }
    return graph_add(place->graph, place->deps, place->edges, place->n, type, work, place->out);
}

/* ---- kernels ---- */

static CUresult kernel_work(const CUDA_KERNEL_NODE_PARAMS_v2 *params, struct work **out)
{
    struct launch launch = {
        .function = params->func != NULL ? params->func : (CUfunction)params->kern,
        .grid = {params->gridDimX, params->gridDimY, params->gridDimZ},
        .block = {params->blockDimX, params->blockDimY, params->blockDimZ},
        .shared = params->sharedMemBytes,
        .params = params->kernelParams,
        .extra = params->extra,
    };
    CUresult result = launch_prepare(&launch, out);
    return result == CUDA_ERROR_INVALID_HANDLE ? CUDA_ERROR_INVALID_VALUE : result;
}

static CUDA_KERNEL_NODE_PARAMS_v2 widen(const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 wide = {0};
    memcpy(&wide, params, sizeof *params); /* v2 has two more fields at the end */
    return wide;
}

static CUresult add_kernel(const struct place *place, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    struct work *work;
    TRY(kernel_work(params, &work));
    return add(place, CU_GRAPH_NODE_TYPE_KERNEL, work);
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n,
                                 const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    ENTER(cuGraphAddKernelNode_v2);
    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    CUresult result = add_kernel(&(struct place){out, graph, deps, NULL, n}, params);
    sim_unlock();
    return result;
}

CUresult cuGraphAddKernelNode(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n,
                              const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    ENTER(cuGraphAddKernelNode);
    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_KERNEL_NODE_PARAMS_v2 wide = widen(params);
    sim_lock();
    CUresult result = add_kernel(&(struct place){out, graph, deps, NULL, n}, &wide);
    sim_unlock();
    return result;
}

static CUresult get_params(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    if (params == NULL || !handle_is(node, KIND_NODE) || node->type != CU_GRAPH_NODE_TYPE_KERNEL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const struct work *work = node->work;
    memset(params, 0, sizeof *params);
    if (work->kind == WORK_HOST_KERNEL) {
        params->func = work->u.host_kernel.function;
        params->gridDimX = params->gridDimY = params->gridDimZ = 1;
        params->blockDimX = params->blockDimY = params->blockDimZ = 1;
        return CUDA_SUCCESS;
    }
    params->func = work->u.kernel.function;
    params->gridDimX = work->u.kernel.grid[0];
    params->gridDimY = work->u.kernel.grid[1];
    params->gridDimZ = work->u.kernel.grid[2];
    params->blockDimX = work->u.kernel.block[0];
    params->blockDimY = work->u.kernel.block[1];
    params->blockDimZ = work->u.kernel.block[2];
    params->sharedMemBytes = work->u.kernel.shared;
    params->kernelParams = work->u.kernel.param_pointers;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetParams_v2(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    ENTER(cuGraphKernelNodeGetParams_v2);
    sim_lock();
    CUresult result = get_params(node, params);
    sim_unlock();
    return result;
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    CUDA_KERNEL_NODE_PARAMS_v2 wide;
    ENTER(cuGraphKernelNodeGetParams);
    sim_lock();
    CUresult result = get_params(node, params != NULL ? &wide : NULL);
    sim_unlock();
    if (result == CUDA_SUCCESS) {
        memcpy(params, &wide, sizeof *params);
    }
    return result;
}

static CUresult set_params(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    struct work *work;
    if (!handle_is(node, KIND_NODE) || node->type != CU_GRAPH_NODE_TYPE_KERNEL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(kernel_work(params, &work));
    work->u.kernel.programmatic = work_is_programmatic(node->work);
    work_unref(node->work);
    node->work = work;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams_v2(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    ENTER(cuGraphKernelNodeSetParams_v2);
    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    CUresult result = set_params(node, params);
    sim_unlock();
    return result;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    ENTER(cuGraphKernelNodeSetParams);
    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_KERNEL_NODE_PARAMS_v2 wide = widen(params);
    sim_lock();
    CUresult result = set_params(node, &wide);
    sim_unlock();
    return result;
}

/* In an executable copy: the graph stays as it is. */
static CUresult set_exec_params(CUgraphExec exec, CUgraphNode node,
                                const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    struct work *work;
    if (!handle_is(exec, KIND_EXEC) || !handle_is(node, KIND_NODE)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (size_t i = 0; i < exec->graph->n; i++) {
        CUgraphNode copy = exec->graph->nodes[i];
        if (copy->origin == node->id && copy->type == CU_GRAPH_NODE_TYPE_KERNEL) {
            TRY(kernel_work(params, &work));
            work->u.kernel.programmatic = work_is_programmatic(copy->work);
            work_unref(copy->work);
            copy->work = work;
            exec_changed(exec);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUDA_KERNEL_NODE_PARAMS_v2 *params)
{
    ENTER(cuGraphExecKernelNodeSetParams_v2);
    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    sim_lock();
    CUresult result = set_exec_params(exec, node, params);
    sim_unlock();
    return result;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS_v1 *params)
{
    ENTER(cuGraphExecKernelNodeSetParams);
    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUDA_KERNEL_NODE_PARAMS_v2 wide = widen(params);
    sim_lock();
    CUresult result = set_exec_params(exec, node, &wide);
    sim_unlock();
    return result;
}

/* ---- the other kinds ---- */

static CUresult add_child(const struct place *place, CUgraph child)
{
    if (!handle_is(child, KIND_GRAPH) || child->capture != NULL || child == place->graph) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(add(place, CU_GRAPH_NODE_TYPE_GRAPH, NULL));
    (*place->out)->child = graph_clone(child, false);
    (*place->out)->child->owned = true;
    return CUDA_SUCCESS;
}

static CUresult add_event(const struct place *place, CUevent event, bool record)
{
    if (!handle_is(event, KIND_EVENT)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct work *work = work_new(record ? WORK_RECORD : WORK_WAIT);
    work->u.event = event;
    atomic_fetch_add(&event->refs, 1);
    return add(place, record ? CU_GRAPH_NODE_TYPE_EVENT_RECORD : CU_GRAPH_NODE_TYPE_WAIT_EVENT,
               work);
}

static CUresult add_host(const struct place *place, CUhostFn fn, void *data)
{
    if (fn == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct work *work = work_new(WORK_HOST);
    work->u.host.fn = fn;
    work->u.host.data = data;
    return add(place, CU_GRAPH_NODE_TYPE_HOST, work);
}

static CUresult add_memset(const struct place *place, const CUDA_MEMSET_NODE_PARAMS *set)
{
    if (set->width == 0 || set->height == 0 ||
        (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4) ||
        !region_covers(set->dst, (set->height - 1) * set->pitch + set->width * set->elementSize)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct work *work = work_new(WORK_SET);
    work->u.set = *set;
    return add(place, CU_GRAPH_NODE_TYPE_MEMSET, work);
}

/* One more function: its place, and in sim_lock the call that adds. */
#define ADD(symbol, parameters, call)                           \
    CUresult symbol parameters                                  \
    {                                                           \
        ENTER(symbol);                                          \
        const struct place place = {out, graph, deps, NULL, n}; \
        sim_lock();                                             \
        CUresult result = call;                                 \
        sim_unlock();                                           \
        return result;                                          \
    }
#define PLACE CUgraphNode *out, CUgraph graph, const CUgraphNode *deps, size_t n

ADD(cuGraphAddEmptyNode, (PLACE), add(&place, CU_GRAPH_NODE_TYPE_EMPTY, NULL))
ADD(cuGraphAddChildGraphNode, (PLACE, CUgraph child), add_child(&place, child))
ADD(cuGraphAddEventRecordNode, (PLACE, CUevent event), add_event(&place, event, true))
ADD(cuGraphAddEventWaitNode, (PLACE, CUevent event), add_event(&place, event, false))
ADD(cuGraphAddHostNode, (PLACE, const CUDA_HOST_NODE_PARAMS *params),
    params != NULL ? add_host(&place, params->fn, params->userData) : CUDA_ERROR_INVALID_VALUE)
ADD(cuGraphAddMemsetNode, (PLACE, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext ctx),
    params != NULL && ctx != NULL ? add_memset(&place, params) : CUDA_ERROR_INVALID_VALUE)

/* ---- conditions ---- */

static CUresult create_condition(CUgraphConditionalHandle *out, CUgraph graph, unsigned initial,
                                 unsigned flags)
{
    if (out == NULL || !handle_is(graph, KIND_GRAPH) ||
        (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    struct condition *condition = sim_alloc(sizeof *condition);
    atomic_init(&condition->refs, 1);
    atomic_init(&condition->value, initial);
    condition->initial = initial;
    condition->reset = flags != 0;
    graph->conditions =
        sim_grow(graph->conditions, graph->nconditions + 1, sizeof *graph->conditions);
    graph->conditions[graph->nconditions++] = condition;
    *out = (CUgraphConditionalHandle)(uintptr_t)condition;
    return CUDA_SUCCESS;
}

CUresult cuGraphConditionalHandleCreate(CUgraphConditionalHandle *out, CUgraph graph, CUcontext ctx,
                                        unsigned int initial, unsigned int flags)
{
    ENTER(cuGraphConditionalHandleCreate);
    (void)ctx;
    sim_lock();
    CUresult result = create_condition(out, graph, initial, flags);
    sim_unlock();
    return result;
}

void fakecuda_set_conditional(uint64_t handle, unsigned value)
{
    atomic_store(&((struct condition *)(uintptr_t)handle)->value, value);
}

static CUresult add_conditional(const struct place *place, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
    struct condition *condition = (struct condition *)(uintptr_t)params->handle;
    if (params->size == 0 || params->size > 64 || condition == NULL ||
        params->type > CU_GRAPH_COND_TYPE_SWITCH ||
        (params->type == CU_GRAPH_COND_TYPE_WHILE && params->size != 1) ||
        (params->type == CU_GRAPH_COND_TYPE_IF && params->size > 2)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    TRY(add(place, CU_GRAPH_NODE_TYPE_CONDITIONAL, NULL));
    CUgraphNode node = *place->out;
    atomic_fetch_add(&condition->refs, 1);
    node->condition = condition;
    node->condition_type = params->type;
    node->nbodies = params->size;
    node->bodies = sim_alloc(params->size * sizeof(CUgraph));
    for (unsigned i = 0; i < params->size; i++) {
        node->bodies[i] = graph_new(false);
        node->bodies[i]->owned = true;
    }
    params->phGraph_out = node->bodies; /* lives as long as the node */
    return CUDA_SUCCESS;
}

static CUresult add_any(const struct place *place, CUgraphNodeParams *params)
{
    if (params == NULL) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: {
        CUDA_KERNEL_NODE_PARAMS_v2 kernel = {
            .func = params->kernel.func,
            .gridDimX = params->kernel.gridDimX,
            .gridDimY = params->kernel.gridDimY,
            .gridDimZ = params->kernel.gridDimZ,
            .blockDimX = params->kernel.blockDimX,
            .blockDimY = params->kernel.blockDimY,
            .blockDimZ = params->kernel.blockDimZ,
            .sharedMemBytes = params->kernel.sharedMemBytes,
            .kernelParams = params->kernel.kernelParams,
            .extra = params->kernel.extra,
            .kern = params->kernel.kern,
        };
        return add_kernel(place, &kernel);
    }
    case CU_GRAPH_NODE_TYPE_MEMSET: {
        CUDA_MEMSET_NODE_PARAMS set = {
            .dst = params->memset.dst,
            .pitch = params->memset.pitch,
            .value = params->memset.value,
            .elementSize = params->memset.elementSize,
            .width = params->memset.width,
            .height = params->memset.height,
        };
        return add_memset(place, &set);
    }
    case CU_GRAPH_NODE_TYPE_HOST:
        return add_host(place, params->host.fn, params->host.userData);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return add_child(place, params->graph.graph);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return add(place, CU_GRAPH_NODE_TYPE_EMPTY, NULL);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return add_event(place, params->eventWait.event, false);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return add_event(place, params->eventRecord.event, true);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        return add_conditional(place, &params->conditional);
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuGraphAddNode_v2(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                           const CUgraphEdgeData *edges, size_t n, CUgraphNodeParams *params)
{
    ENTER(cuGraphAddNode_v2);
    sim_lock();
    CUresult result = add_any(&(struct place){out, graph, deps, edges, n}, params);
    sim_unlock();
    return result;
}

ADD(cuGraphAddNode, (PLACE, CUgraphNodeParams *params), add_any(&place, params))
